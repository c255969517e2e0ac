package node

import (
	"testing"

	"sequins/load"
	"sequins/version/report"
)

// A node reports a version that it loads before it has a block of it, with every block that it has, and when it does not load any more. Other
// nodes wait for its blocks by that.
func TestReportsWhatItLoads(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.source.planned.Store(true)
	c := newCluster()
	r := f.run(in(c), func(o *Options) {
		o.each(func(d *DB) { d.Load = load.Options{Partitioner: "string"} }) // planned with three files opened
	})
	reported := func() report.Report {
		r, err := report.Parse([]byte(c.report("1")))
		if err != nil {
			return report.Report{}
		}
		return r
	}
	r.eventually("it reports the load", func() bool { return reported().Loading })
	if blocks := reported().Blocks; len(blocks) > 0 {
		t.Errorf("it reports %v before it has read a file", blocks)
	}
	f.source.planned.Store(false)
	r.eventually("it reports the blocks, and that the load has ended", func() bool { return len(reported().Blocks) == 2 && !reported().Loading })
	r.stop()
}
