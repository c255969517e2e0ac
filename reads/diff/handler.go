package diff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sequins/internal/names"
	"sequins/reads"
)

// Handler answers GET /<db>?diff=OLD..NEW. The caller has checked that the client may read the database.
type Handler struct{ reader *reads.Reader }

// New returns a handler for the versions of a reader.
func New(r *reads.Reader) Handler { return Handler{r} }

// parse returns the names of the versions in a query, and whether every key that differs is asked for.
func parse(query string) (before, after string, list bool, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", "", false, errors.New("the query cannot be parsed")
	}
	before, after, ok := strings.Cut(names.FromQuery(values.Get("diff")), "..")
	if !ok || !names.Valid(before) || !names.Valid(after) {
		return "", "", false, errors.New("diff must be two names of versions, as in ?diff=2026-01-30..2026-01-31")
	}
	return before, after, values.Has("list"), nil
}

// Serve answers a request for a db with a query. lines reports whether the answer is lines of JSON. If code is not 200,
// nothing was written, and text is the reason.
func (h Handler) Serve(ctx context.Context, w http.ResponseWriter, db, query string, lines bool) (code int, text string) {
	old, now, list, err := parse(query)
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	versions, missing, o := h.reader.Compare(ctx, db, old, now)
	switch o {
	case reads.Found:
		defer versions.Close()
	case reads.Busy:
		return http.StatusServiceUnavailable, "too many ordered reads at the same time: try again"
	case reads.NotHere:
		return http.StatusNotFound, fmt.Sprintf("version %s of %s is not on this node", missing, db)
	default:
		return http.StatusNotFound, "there is no database " + db
	}
	c := &comparison{
		versions: versions, list: list, report: &Report{DB: db, Old: old, New: now, Partitions: []Row{}},
		out: &answer{w: w, lines: lines || list},
	}
	err = c.run(ctx)
	switch {
	case err == nil:
		err = c.out.finish(c.report)
	case !c.out.begun:
		return http.StatusInternalServerError, err.Error()
	default:
		err = c.out.send(line{Error: err.Error()})
	}
	_ = err // the client has gone
	return http.StatusOK, ""
}

// comparison is a running comparison.
type comparison struct {
	versions *reads.Comparison
	list     bool // every key that differs
	report   *Report
	out      *answer
}

// run compares one partition after the other, or the versions as a whole if they are partitioned differently.
func (c *comparison) run(ctx context.Context) error {
	partitions := []int{-1}
	if c.versions.Aligned() {
		partitions = partitions[:0]
		for p := range c.versions.Partitions() {
			partitions = append(partitions, p)
		}
	}
	for i, p := range partitions {
		row, o, err := c.partition(ctx, p)
		switch {
		case err != nil:
			return err
		case o == reads.Found:
			c.report.add(row)
		case o == reads.Unreadable || o == reads.GivenUp || c.list && !row.Equal(): // a part of the list is sent
			return fmt.Errorf("%s: %s", partitionName(p), reasons[o])
		default:
			c.report.Unknown = append(c.report.Unknown, p)
		}
		if err := c.out.progress(Progress{i + 1, len(partitions)}); err != nil {
			return err
		}
	}
	return nil
}

// reasons are the texts of outcomes.
var reasons = map[reads.Outcome]string{
	reads.Unreadable:  "a block cannot be read",
	reads.Unreachable: "no node that can be reached has it",
	reads.Late:        "the nodes that have it took too long",
	reads.GivenUp:     "the node is shutting down",
}

func partitionName(p int) string {
	if p < 0 {
		return "all partitions"
	}
	return fmt.Sprintf("partition %d", p)
}

// partition compares a partition. One whose hashes are equal is not read.
func (c *comparison) partition(ctx context.Context, p int) (row Row, o reads.Outcome, err error) {
	row.Partition = p
	if p >= 0 {
		if n, equal := c.versions.Equal(p); equal {
			row.OldRecords, row.NewRecords, row.Skipped = n, n, true
			return row, reads.Found, nil
		}
	}
	before, after, o := c.versions.Scan(p)
	if ctx.Err() != nil {
		return row, o, ctx.Err()
	}
	if o != reads.Found {
		return row, o, nil
	}
	var each emit
	if c.list {
		each = c.out.difference
	}
	o, err = row.compare(ctx, before, after, each)
	if err == nil {
		err = ctx.Err()
	}
	return row, o, err
}

// answer writes an answer. Its first byte decides about the status.
type answer struct {
	w     http.ResponseWriter
	lines bool
	begun bool
	told  time.Time
}

// progressPeriod is the interval of lines of progress.
const progressPeriod = 500 * time.Millisecond

func (a *answer) progress(p Progress) error {
	if !a.lines || time.Since(a.told) < progressPeriod {
		return nil
	}
	a.told = time.Now()
	return a.send(line{Progress: &p})
}

func (a *answer) difference(op Op, key []byte) error {
	return a.send(line{Difference: &Difference{op, slices.Clone(key)}})
}

// send sends a line.
func (a *answer) send(l line) error {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	return a.write(l)
}

func (a *answer) write(v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = a.w.Write(append(data, '\n'))
	}
	return err
}

// finish sends the result.
func (a *answer) finish(r *Report) error {
	if a.lines {
		return a.send(line{Report: r})
	}
	a.w.Header().Set("Content-Type", "application/json")
	return a.write(r)
}
