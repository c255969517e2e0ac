package node

import (
	"slices"
	"testing"
)

// What another node refutes is planned anew, by the next partitioner, or with every file read.
func TestRefutedElsewhere(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	c := newCluster()
	c.refute("1", "string")
	r := f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "1")
	if m := f.manifest("fruit", "1"); m.Aligned && m.Partitioner == "string" || !slices.Contains(m.Refuted, "string") {
		t.Errorf("planned by %s, aligned %v, refuted %q", m.Partitioner, m.Aligned, m.Refuted)
	}
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 1" {
			t.Errorf("%s: %+v", key, got)
		}
	}
}

// A version of one partition has all records by any function, so a refutation, of what it was before it was
// written anew, does not keep it from being served.
func TestOnePartitionIsNotRefuted(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	c := newCluster()
	c.refute("1", "string")
	r := f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "1")
	if n := f.log.count("load started"); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// What was served is served after a restart, whatever is refuted meanwhile.
func TestServedIsNotRefuted(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	c := newCluster()
	r := f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "1")
	c.refute("1", r.node("fruit", "1").Partitioner)
	r.stop()
	f.source.down.Store(true)
	r = f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "1")
	if got := r.get("/fruit/fig"); got.body != "fig of 1" {
		t.Errorf("after a restart: %+v", got)
	}
}

// A node that holds nothing of a db proxies it after a restart as before: without the source, when the version is
// gone from it, and when the db is.
func TestRestartOfANodeWithoutBlocks(t *testing.T) {
	for name, test := range map[string]struct{ change func(f *fixture) }{
		"the source is away":     {func(f *fixture) { f.source.down.Store(true) }},
		"the version is gone":    {func(f *fixture) { f.remove("fruit", "2") }},
		"the db is gone":         {func(f *fixture) { f.remove("fruit") }},
		"everything is the same": {func(*fixture) {}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("nuts", "1", 1, "almond")
			f.put("fruit", "1", 3, fruit...)
			f.put("fruit", "2", 3, fruit...)
			conf := func(o *Options) {
				c := newCluster()
				c.owned = []int{}
				c.hold("1", 0, 1, 2)
				c.hold("2", 0, 1, 2)
				o.Cluster = c
			}
			r := f.run(conf)
			r.serves("fruit", "2")
			r.stop()
			test.change(f)
			r = f.run(conf)
			r.serves("fruit", "2")
		})
	}
}
