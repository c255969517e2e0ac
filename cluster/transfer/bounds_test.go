package transfer_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sequins/cluster/transfer"
	"sequins/shard"
	"sequins/version"
	"sequins/version/report"
)

// A stage is what a node reports from a time on: it loads, and has blocks that nobody wants; or nothing, or that it has left the cluster.
type stage struct {
	from   time.Duration
	loads  bool
	blocks int
	none   bool
	left   bool
}

// others are the nodes that have to hold partition 1.
type others struct {
	version.Solo
	t     *testing.T
	own   bool // partition 0 is this node's; otherwise nobody's
	began time.Time
	nodes map[string][]stage
}

// now returns the report of a node, nil if there is none, and whether it is a member.
func (o others) now(addr string) (r *report.Report, member bool) {
	now := stage{none: true}
	for _, r := range o.nodes[addr] {
		if time.Since(o.began) >= r.from {
			now = r
		}
	}
	if now.none || now.left {
		return nil, !now.left
	}
	r = &report.Report{Loading: now.loads, Blocks: make(map[int]report.Figures)}
	for i := range now.blocks {
		r.Blocks[2+i] = report.Figures{}
	}
	return r, true
}

// Owners implements version.Following.
func (o others) Owners() ([][]string, string) {
	var of []string
	for addr := range o.nodes {
		if _, member := o.now(addr); member {
			of = append(of, addr)
		}
	}
	if o.own {
		return [][]string{{self}, of}, self
	}
	return [][]string{nil, of}, self
}

// Reports implements version.Following.
func (o others) Reports() (map[string]report.Report, bool) {
	reports := make(map[string]report.Report)
	for addr := range o.nodes {
		if r, _ := o.now(addr); r != nil {
			reports[addr] = *r
		}
	}
	return reports, true
}

// Every wait for a reader has an end. Times are from the beginning of the Fill.
func TestBounds(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	loads := []stage{{loads: true}}
	tests := map[string]struct {
		load time.Duration // that this node's own takes; 0: it has none
		a, b []stage
		ends time.Duration
	}{
		"never reports":                           {0, []stage{{none: true}}, nil, 30 * s},
		"never reports, after a short load":       {s, []stage{{none: true}}, nil, 31 * s},
		"never reports, after a long load":        {5 * m, []stage{{none: true}}, nil, 5*m + 30*s},
		"reports, and does not load":              {0, []stage{{blocks: 2}}, nil, 30 * s},
		"loads forever":                           {0, loads, nil, 10 * m},
		"loads forever, after a short load":       {s, loads, nil, 10*m + s},
		"loads forever, after a long load":        {h, loads, nil, 2 * h},
		"begins late":                             {m, []stage{{none: true}, {from: m + 20*s, loads: true}}, nil, 11 * m},
		"grows":                                   {s, []stage{{loads: true}, {from: 10 * s, loads: true, blocks: 1}, {from: 20 * s, loads: true, blocks: 2}}, nil, 10*m + 20*s},
		"shrinks, and grows again":                {s, []stage{{loads: true, blocks: 2}, {from: 5 * s, loads: true}, {from: 10 * s, loads: true, blocks: 2}}, nil, 10*m + s},
		"its load fails":                          {m, []stage{{loads: true}, {from: 2 * m}}, nil, 2 * m},
		"leaves":                                  {0, []stage{{loads: true}, {from: 5 * s, left: true}}, nil, 5 * s},
		"two, one after the other":                {s, loads, loads, 20*m + s},
		"two, the second of which grows first":    {s, []stage{{loads: true}, {from: 12 * s, loads: true, blocks: 1}, {from: 14 * s, loads: true, blocks: 2}}, loads, 20*m + s},
		"two, which leave":                        {s, []stage{{from: 0, loads: true}, {from: 7 * s, left: true}}, []stage{{from: 0, loads: true}, {from: 7 * s, left: true}}, 7 * s},
		"two, the first of which reports nothing": {m, []stage{{none: true}}, []stage{{none: true}}, 2 * m},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := others{t: t, began: time.Now(), own: test.load > 0, nodes: map[string][]stage{"a:1": test.a}}
				if test.b != nil {
					o.nodes["b:1"] = test.b
				}
				want := []int{1}
				if test.load > 0 {
					want = []int{0, 1}
				}
				dir, copies := newDir(t), newTransfer(t)
				run := transfer.NewRun(copies, "db", o, slog.New(slog.DiscardHandler))
				load := func(mine []int) error {
					if len(mine) != len(want)-1 {
						t.Errorf("loads %v of %v", mine, want)
					}
					time.Sleep(test.load)
					return nil
				}
				err := run.Fill(t.Context(), transfer.Job{Dir: dir, Partitioner: shard.String, Want: want, Load: load})
				if took := time.Since(o.began); !errors.Is(err, transfer.ErrLeft) || took < test.ends || took > test.ends+s {
					t.Errorf("%v after %v, want %v", err, took, test.ends)
				}
				// The reader is not waited for again.
				began := time.Now()
				err = run.Fill(t.Context(), transfer.Job{Dir: dir, Partitioner: shard.String, Want: want, Load: func(mine []int) error {
					if len(mine) != len(want) {
						t.Errorf("then loads %v of %v", mine, want)
					}
					return nil
				}})
				if took := time.Since(began); err != nil || took > s {
					t.Errorf("then %v after %v", err, took)
				}
			})
		})
	}
}

// A node that owns more than what is wanted, as it was assigned other partitions meanwhile, does not wait for others, which may wait for it.
func TestOwnsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := others{t: t, began: began, own: true, nodes: map[string][]stage{"a:1": {{loads: true}}}}
		run := transfer.NewRun(newTransfer(t), "db", o, slog.New(slog.DiscardHandler))
		err := run.Fill(t.Context(), transfer.Job{Dir: newDir(t), Partitioner: shard.String, Want: []int{1}, Load: func([]int) error { return nil }})
		if took := time.Since(began); !errors.Is(err, transfer.ErrLeft) || took > time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}
