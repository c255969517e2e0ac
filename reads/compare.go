package reads

import (
	"bytes"
	"context"
	"slices"

	"sequins/version"
)

// Comparison reads two versions of a db in order, partition by partition, whether or not they are served. It follows reports
// of nodes, as a version that is not served is not advertised. Its methods are for one goroutine.
type Comparison struct {
	reader   *Reader
	versions [2]*Read
	ctx      context.Context
	reserved int64
}

// Compare acquires two versions of a db by name. If one of them is not on this node, missing is its name and the outcome
// NotHere; the others are NoDB and Busy. After Found, the caller must call Close. Reads end with ctx.
func (rd *Reader) Compare(ctx context.Context, db, before, after string) (c *Comparison, missing string, o Outcome) {
	set := rd.catalog.Set([]byte(db))
	if set == nil {
		return nil, "", NoDB
	}
	c = &Comparison{reader: rd, ctx: ctx}
	for i, name := range []string{before, after} {
		if c.versions[i] = rd.readVersion(set, name); c.versions[i] == nil {
			c.Close()
			return nil, name, NotHere
		}
	}
	if !c.reserve() {
		c.Close()
		return nil, "", Busy
	}
	return c, "", Found
}

// readVersion returns a Read of a version that holds it until LetGo; nil if it is not on this node.
func (rd *Reader) readVersion(set *version.Set, name string) *Read {
	h := set.AcquireVersion(name, "")
	if h == nil {
		return nil
	}
	r := rd.NewRead()
	r.query = &Query{DB: []byte(set.DB())}
	r.db, r.handle, r.holders = rd.database(r.query.DB), h, holders(h)
	r.labels = r.db.labelsOf(rd, h)
	r.Version, r.Content = r.labels.version, r.labels.content
	return &r
}

// holders returns the nodes that report or advertise each partition.
func holders(h *version.Handle) [][]string {
	all := make([][]string, h.Partitions)
	reports, _ := h.Following.Reports()
	for addr, report := range reports {
		for p := range report.Blocks {
			if p < len(all) {
				all[p] = append(all[p], addr)
			}
		}
	}
	for p := range all {
		all[p] = append(all[p], h.Following.Peers(p)...)
		slices.Sort(all[p])
		all[p] = slices.Compact(all[p])
	}
	return all
}

// reserve counts the comparison as the ordered reads that it consists of, until Close. It returns false if there are too many.
func (c *Comparison) reserve() bool {
	var n int64
	for _, r := range c.versions {
		most := allPartitions(r.handle)
		if c.Aligned() {
			most = most[:min(1, len(most))]
		}
		bytes, _ := r.readAhead(most)
		n += 1 + bytes/scanUnit
	}
	var ok bool
	c.reserved, ok = takeScans(&c.reader.scans, int64(c.reader.opts.MaxScans), n)
	return ok
}

// Close releases the versions.
func (c *Comparison) Close() {
	c.reader.scans.Add(-c.reserved)
	for _, r := range c.versions {
		if r != nil {
			r.LetGo()
		}
	}
}

// Aligned reports whether both versions put each key into the same partition.
func (c *Comparison) Aligned() bool {
	a, b := c.versions[0].handle, c.versions[1].handle
	return a.Partitions == b.Partitions && a.Partitioner == b.Partitioner
}

// Partitions returns the number of partitions of versions that are aligned.
func (c *Comparison) Partitions() int { return c.versions[0].handle.Partitions }

// Equal reports whether a partition of both versions has the same records, by hashes, and how many. It is false if that is
// not known.
func (c *Comparison) Equal(partition int) (records int64, equal bool) {
	var sums [2]summary
	for i, r := range c.versions {
		var o Outcome
		if sums[i], o = r.another(c.ctx).summary(partition); o != Found || sums[i].hash == "" {
			return 0, false
		}
	}
	return sums[0].records, sums[0] == sums[1]
}

// Scan begins to read a partition of both versions, or all partitions if it is negative. The scans before end. The outcome
// is that of the first one that fails.
func (c *Comparison) Scan(partition int) (before, after *Scan, o Outcome) {
	scans := [2]*Scan{}
	for i, r := range c.versions {
		partitions := []int{partition}
		if partition < 0 {
			partitions = allPartitions(r.handle)
		}
		scans[i] = r.another(c.ctx)
		_, span := r.readAhead(partitions)
		if o := scans[i].start(partitions, span); o != Found {
			return nil, nil, o
		}
	}
	return scans[0], scans[1], Found
}

func (r *Read) another(ctx context.Context) *Scan {
	if r.scan != nil {
		r.scan.close()
	}
	return r.newScan(ctx, interval{}, false, 0)
}

// SameValue reports whether the current values of two scans are equal; large ones by their hashes.
func (s *Scan) SameValue(other *Scan) bool {
	a, b := &s.item, &other.item
	return a.length == b.length && a.hash == b.hash && bytes.Equal(a.small, b.small)
}
