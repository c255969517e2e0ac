//go:build integration

package cluster

import (
	"slices"
	"testing"
	"time"

	"sequins/shard"
	"sequins/version"
	"sequins/zk"
)

// offline returns nodes that see each other, but not by ZooKeeper: the result of
// look lets all of them see the members, and what each has advertised.
func (f *testCluster) offline(partitions int, ids ...string) (hs []*holder, look func(members ...string)) {
	f.t.Helper()
	entries, followed := make([][]zk.Entry, len(ids)), make([]*following, len(ids))
	for i, id := range ids {
		c, _ := f.node(id)
		followed[i] = c.follow("db", x.Input)
		hs = append(hs, &holder{c, followed[i], make([]bool, partitions)})
	}
	return hs, func(members ...string) {
		var all []Member
		for _, id := range members {
			all = append(all, Member{ShardID: id, Addr: id + ":1", Settings: &hs[0].o.Settings})
		}
		for i, h := range hs {
			h.members.Store(newMembership(slices.Clone(all), h.self.Load(), h.o.Settings, "", time.Now().Add(-time.Hour)))
			for j, other := range hs {
				if i != j {
					entries[i] = slices.DeleteFunc(entries[i], func(e zk.Entry) bool { return e.Name[len("00000@"):] == other.o.Addr })
					for p := range followed[j].advertised {
						entries[i] = append(entries[i], znode(p, other.o.Addr, x))
					}
				}
			}
			followed[i].updatePartitions(entries[i])
		}
	}
}

func (h *holder) advertise() {
	for p, here := range h.held {
		if here {
			h.Advertise(p)
		}
	}
}

// A cluster that restarts without one of its nodes finally holds all partitions, although each node assigned the partitions
// before it knew what the others hold.
func TestRestartWithANodeLess(t *testing.T) {
	const partitions = 24
	for _, rule := range []shard.Assignment{shard.Balanced, shard.RoundRobin} {
		for _, replication := range []int{1, 2} {
			f := newTestCluster(t, "127.0.0.1:1", func(o *Options) {
				o.Settings.Assignment, o.Settings.Replication, o.MinReplication = rule, replication, replication
			})
			hs, look := f.offline(partitions, "a", "b", "c")
			owners := shard.Assign(rule, []shard.Member{{ShardID: "a"}, {ShardID: "b"}, {ShardID: "c"}, {ShardID: "d"}}, partitions, replication, "db")
			look("a", "b", "c")
			for _, h := range hs {
				for p, shards := range owners {
					h.held[p] = slices.Contains(shards, h.ShardID())
				}
				h.SetDivision(x.Division, len(h.held))
				h.assignAgain(time.Now()) // before anything is advertised
			}
			for _, h := range hs {
				h.advertise()
			}
			for range 5 {
				look("a", "b", "c")
				for _, h := range hs {
					h.assignAgain(time.Now())
					h.load()
				}
			}
			look("a", "b", "c")
			for _, h := range hs {
				if missing := version.Missing(h, h.held, replication); len(missing) > 0 {
					t.Errorf("%s, %d replicas: nobody loads %v", rule, replication, missing)
				}
			}
		}
	}
}

// A node that is lost before the switch to a version, but after it had advertised what it holds, does not block the
// switch. One that is lost after the switch is waited for.
func TestLostBeforeTheSwitch(t *testing.T) {
	for _, switched := range []bool{false, true} {
		f := newTestCluster(t, "127.0.0.1:1", func(o *Options) { o.Settings.Replication = 1 })
		hs, look := f.offline(6, "a", "b")
		look("a", "b")
		for _, h := range hs {
			h.SetDivision(x.Division, len(h.held))
			h.load()
		}
		look("a", "b")
		a, b := hs[0], hs[1]
		a.assignAgain(time.Now())
		if switched {
			a.Switched()
		}
		b.Withdraw()
		look("a")
		a.assignAgain(time.Now())
		a.load()
		if got, want := len(a.has()), map[bool]int{false: 6, true: 3}[switched]; got != want {
			t.Errorf("switched: %v; a holds %d partitions, want %d", switched, got, want)
		}
	}
}

// While nodes load the partitions of a new version, these are not assigned in another way, whatever each node sees of the
// progress of the others.
func TestAssignmentIsSteadyWhileLoading(t *testing.T) {
	f := newTestCluster(t, "127.0.0.1:1", func(o *Options) {
		o.Settings.Assignment, o.MinReplication = shard.Balanced, 2
	})
	hs, look := f.offline(24, "a", "b", "c")
	look("a", "b", "c")
	owned := make([][]int, len(hs))
	for i, h := range hs {
		h.SetDivision(x.Division, len(h.held))
		owned[i] = h.Owned(len(h.held))
	}
	for step := range slices.Max([]int{len(owned[0]), len(owned[1]), len(owned[2])}) {
		for i, h := range hs {
			if step < len(owned[i]) {
				h.held[owned[i][step]] = true
				h.advertise()
			}
			h.assignAgain(time.Now())
			if got := h.Owned(len(h.held)); !slices.Equal(got, owned[i]) {
				t.Fatalf("step %d: %s had to hold %v, and has to hold %v", step, h.ShardID(), owned[i], got)
			}
			if step%3 == i {
				look("a", "b", "c")
			}
		}
	}
}
