//go:build integration

package cluster

import (
	"testing"

	"sequins/version"
)

// A database that was removed from all nodes is unknown, for any number of partitions. Nodes that start after all nodes
// of a database have crashed do not know it either.
func testRemoved(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, lose := f.node("a")
	f.join(a)
	publish := func(db string, partitions int) version.Following {
		t.Helper()
		v := a.Follow(t.Context(), db, x.Input)
		v.SetDivision(x.Division, partitions)
		for p := range partitions {
			v.Advertise(p)
		}
		f.flush(a)
		f.eventually(db+" is known", func() bool { return a.Knows(db) })
		return v
	}
	for db, partitions := range map[string]int{"small": 100, "large": 3000} { // the second is withdrawn in several requests
		publish(db, partitions).Stop()
		f.eventually(db+" is not known", func() bool { return !a.Knows(db) })
	}
	publish("left", 10)
	lose()
	b, _ := f.node("b")
	f.join(b)
	f.eventually("what was left is not known", func() bool { return len(*b.dbs.Load()) == 0 })
}
