package main

import (
	"slices"
	"testing"
	"time"
)

var small = cluster{nodes: 40, databases: 2, partitions: 300, replication: 2}

func simulate(c cluster, w way) *simulation {
	s := newSimulation(c, w, time.Minute, 20e6, 41, 1)
	s.run()
	return s
}

// Every node sees everything, and switches, and the same again gives the same.
func TestSimulationEnds(t *testing.T) {
	for _, w := range []way{naive, coalesced} {
		s, again := simulate(small, w), simulate(small, w)
		for i, v := range s.views {
			if v.changes != 600 || !v.switched || v.stale || v.busy {
				t.Fatalf("%s: view %d is %+v in the end", w, i, v)
			}
		}
		if s.now != again.now || s.sent != again.sent || !slices.Equal(s.perSecond, again.perSecond) {
			t.Errorf("%s: ends after %v with %d bytes, then after %v with %d", w, s.now, s.sent, again.now, again.sent)
		}
	}
}

// What package zk promises: no node reads more than its budget and burst, and
// none sees a change later than two intervals, where the budget allows it.
func TestCoalescedIsBounded(t *testing.T) {
	s := simulate(small, coalesced)
	limit := float64(s.nodes) * (readBurst + readBudget*s.now.Seconds() + float64(s.databases*s.bytes(600)))
	if float64(s.sent) > limit {
		t.Errorf("%d bytes sent, of at most %.0f", s.sent, limit)
	}
	one := simulate(cluster{nodes: 40, databases: 1, partitions: 300, replication: 2}, coalesced)
	interval := time.Duration(one.bytes(600)) * time.Second / readBudget
	if one.seen-one.ended > 2*interval+time.Second {
		t.Errorf("the last node has seen all %v after the end, two intervals are %v", one.seen-one.ended, 2*interval)
	}
	if n := simulate(small, naive); n.sent < 2*s.sent {
		t.Errorf("listing at once sends %d bytes, coalesced %d", n.sent, s.sent)
	}
}

func TestQueue(t *testing.T) {
	var q queue
	want := []time.Duration{}
	for i := range 1000 {
		at := time.Duration(i * 7919 % 501)
		want = append(want, at)
		q.push(event{at: at})
	}
	slices.Sort(want)
	planned := -1
	for i, at := range want {
		e := q.pop()
		if e.at != at || i > 0 && want[i-1] == at && e.n < planned {
			t.Fatalf("event %d is at %d, want %d; planned as %d, the one before as %d", i, e.at, at, e.n, planned)
		}
		planned = e.n
	}
}
