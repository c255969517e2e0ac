package diff

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
		return http.StatusNotFound, fmt.Sprintf("version %s of %s is not on this node: its status names those that are", missing, db)
	default:
		return http.StatusNotFound, "there is no database " + db
	}
	c := &comparison{
		versions: versions, list: list, lines: lines || list, w: w,
		report: &Report{DB: db, Old: old, New: now, Partitions: []Row{}},
	}
	err = c.run(ctx)
	switch {
	case err == nil && c.lines:
		c.send(line{Report: c.report})
	case err == nil:
		c.write("application/json", c.report)
	case c.begun:
		c.send(line{Error: err.Error()})
	default:
		return http.StatusInternalServerError, err.Error()
	}
	return http.StatusOK, ""
}

// comparison is a running comparison, and its answer. The first byte decides about the status.
type comparison struct {
	versions *reads.Comparison
	list     bool // every key that differs
	report   *Report

	w     http.ResponseWriter
	lines bool // the answer is lines of JSON
	begun bool
	told  time.Time // of the last line of progress
	err   error     // of writing: the client has gone
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
		row, o := c.partition(ctx, p)
		switch {
		case ctx.Err() != nil || c.err != nil:
			return cmp.Or(ctx.Err(), c.err)
		case o == reads.Found:
			c.report.add(row)
		case o == reads.Unreadable || o == reads.GivenUp || c.list && !row.Equal(): // a part of the list is sent
			return fmt.Errorf("%s: %s", partitionName(p), reasons[o])
		default:
			c.report.Unknown = append(c.report.Unknown, p)
		}
		if c.lines && time.Since(c.told) > progressPeriod {
			c.told = time.Now()
			c.send(line{Progress: &Progress{i + 1, len(partitions)}})
		}
	}
	return c.err
}

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

const (
	// checkEvery is the number of records after which a comparison looks whether it is still wanted.
	checkEvery = 4096
	// progressPeriod is the interval of lines of progress.
	progressPeriod = 500 * time.Millisecond
)

// partition compares a partition. One whose hashes are equal is not read. The outcome is that of the scans.
func (c *comparison) partition(ctx context.Context, p int) (row Row, o reads.Outcome) {
	row.Partition = p
	if p >= 0 {
		if n, equal := c.versions.Equal(p); equal {
			row.OldRecords, row.NewRecords = n, n
			return row, reads.Found
		}
	}
	old, now, o := c.versions.Scan(p)
	if o != reads.Found {
		return row, o
	}
	haveOld, haveNew := old.Next(), now.Next()
	for n := 0; haveOld || haveNew; n++ {
		if n%checkEvery == 0 && (ctx.Err() != nil || c.err != nil) {
			return row, reads.GivenUp
		}
		order := 0
		switch {
		case !haveNew:
			order = -1
		case !haveOld:
			order = 1
		default:
			order = bytes.Compare(old.Key(), now.Key())
		}
		same := order == 0 && old.SameValue(now)
		if o := failure(old, now); o != reads.Found { // before a key of one version is taken for one that the other lacks
			return row, o
		}
		if !same {
			c.difference(&row, order, old, now)
		}
		if order <= 0 {
			row.OldRecords++
			haveOld = old.Next()
		}
		if order >= 0 {
			row.NewRecords++
			haveNew = now.Next()
		}
	}
	return row, failure(old, now)
}

// failure returns the outcome of the scan that has failed, or Found.
func failure(old, now *reads.Scan) reads.Outcome {
	if o := old.Outcome(); o != reads.Found {
		return o
	}
	return now.Outcome()
}

// difference counts a key that differs. It is only in the old version if order is negative, and only in the new one if it is
// positive.
func (c *comparison) difference(row *Row, order int, old, now *reads.Scan) {
	var op Op
	var key []byte
	switch {
	case order < 0:
		op, key = Removed, old.Key()
		row.Removed++
		row.RemovedBytes += int64(len(key)) + old.Length()
	case order > 0:
		op, key = Added, now.Key()
		row.Added++
		row.AddedBytes += int64(len(key)) + now.Length()
	default:
		op, key = Changed, now.Key()
		row.Changed++
		row.RemovedBytes += old.Length()
		row.AddedBytes += now.Length()
	}
	if c.list {
		c.send(line{Difference: &Difference{op, key}})
	}
}

func (c *comparison) send(l line) { c.write("application/x-ndjson", l) }

// write sends v as JSON, unless the client has gone.
func (c *comparison) write(media string, v any) {
	if c.err != nil {
		return
	}
	if !c.begun {
		c.begun = true
		c.w.Header().Set("Content-Type", media)
	}
	c.err = json.NewEncoder(c.w).Encode(v)
}
