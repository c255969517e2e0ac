package top_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/cmd/sequins/top"
	"sequins/internal/term"
	"sequins/observe/status"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// single returns the status of a single node that loads a version and holds another.
func single() *status.Status {
	loading := status.OnNode{State: status.Building, Detail: "loading"}
	loading.Progress = &status.Progress{Bytes: 200 << 20, BytesDone: 90 << 20, BytesPerSecond: 12 << 20, ETA: now.Add(2 * time.Minute)}
	on := func(n status.OnNode) status.Version {
		return status.Version{Nodes: map[string]status.OnNode{"localhost": n}}
	}
	serving := on(status.OnNode{State: status.Active, Current: true})
	st := &status.Status{
		Node: "localhost", Build: "v2.0.0", StartedAt: now.Add(-3 * time.Hour), Level: status.LevelWarn,
		Health:  "Serving 3 databases; 1 with a newer version that the gate holds.",
		Disk:    status.Disk{Bytes: 100 << 30, Free: 25 << 30},
		Traffic: status.Traffic{Requests: 1334.4, Misses: 120, Errors: 2, P50: 12e-6, P99: 1.25e-3},
		DBs: map[string]status.DB{
			"birds": {Versions: map[string]status.Version{"7": serving, "8": on(loading)}, Traffic: status.Traffic{Requests: 4.2, P50: 9e-6, P99: 20e-6}},
			"users": {Versions: map[string]status.Version{"2026-01-31": serving, "2026-02-01": on(status.OnNode{State: status.Held, Detail: "held: max_shrink: 400 records instead of 1,000\x1b[2J"})}},
			"words": {Versions: map[string]status.Version{"1": serving}, Traffic: status.Traffic{Requests: 1330, Misses: 120, P50: 12e-6, P99: 1.3e-3}, Pin: &status.Pin{Version: "1", By: "ana"}},
		},
		Events: []status.Event{
			{Time: now.Add(-time.Minute), DB: "users", Version: "2026-02-01", Kind: status.EventHeld, Reason: "max_shrink"},
			{Time: now.Add(-time.Hour), DB: "words", Version: "1", Kind: status.EventActive},
		},
	}
	return st
}

// frame draws a view and checks that it fits.
func frame(t *testing.T, v *top.View, width, height int) string {
	t.Helper()
	lines := v.Frame(width, height, now)
	if len(lines) != max(0, height) {
		t.Errorf("%d lines of %d", len(lines), height)
	}
	for _, l := range lines {
		if n := term.Columns(colors.ReplaceAllString(l, "")); n > width {
			t.Errorf("%d columns of %d: %q", n, width, l)
		}
	}
	return strings.Join(lines, "\n")
}

var colors = regexp.MustCompile(`\x1b\[\d+m`)

func shown(t *testing.T, st *status.Status) *top.View {
	t.Helper()
	v := top.New("http://node1:9599", term.Console{})
	v.Update(st, nil, now)
	return v
}

func TestFrame(t *testing.T) {
	want := `sequins top, http://node1:9599, v2.0.0, up for 3 h 0 min, 12:00:00 UTC
Serving 3 databases; 1 with a newer version that the gate holds.
1,334 requests a second, 9.0% missed, 2.0 errors, p50 12 µs, p99 1.2 ms; 25.0 G…
  DATABASE↑  VERSION         REQ/S    MISS      P50      P99
> birds      7                 4.2    0.0%     9 µs    20 µs  8 BUILDING: loadi…
  users      2026-01-31          0    0.0%        -        -  2026-02-01 HELD: …
  words      1               1,330    9.0%    12 µs   1.3 ms  pinned to 1 (by a…
  LOADS
  birds 8 BUILDING [#########           ] 45%, 12.0 MiB a second, about 2 min l…
  users 2026-02-01 HELD: held: max_shrink: 400 records instead of 1,000\x1b[2J
  EVENTS
  01-31 11:59:00 held users 2026-02-01: max_shrink
  01-31 11:00:00 active words 1



q quit  j/k select  s sort  r reverse  / filter`
	got := frame(t, shown(t, single()), 80, 17)
	got = regexp.MustCompile(` +(\n|$)`).ReplaceAllString(got, "$1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every size is drawn, and the most important lines stay.
func TestSizes(t *testing.T) {
	v := shown(t, single())
	for width := range 130 {
		for _, height := range []int{0, 1, 2, 3, 5, 8, 10, 24, 60} {
			frame(t, v, width, height)
		}
	}
	small := frame(t, v, 60, 8)
	for _, want := range []string{"sequins top", "Serving 3 databases", "DATABASE", "> birds", "q quit"} {
		if !strings.Contains(small, want) {
			t.Errorf("no %q in\n%s", want, small)
		}
	}
}

// Of a cluster there are the nodes, and the traffic of all.
func TestCluster(t *testing.T) {
	st := single()
	st.Node = "node1:9599"
	words := st.DBs["words"]
	words.Versions = map[string]status.Version{
		"1": {Nodes: map[string]status.OnNode{"node2:9599": {State: status.Active, Current: true}}},
		"2": {Nodes: map[string]status.OnNode{"node1:9599": {State: status.Active, Current: true}}},
	}
	words.ClusterTraffic = status.Traffic{Seconds: 5, Requests: 2660, P99: 2e-3}
	words.Pin = nil
	st.DBs = map[string]status.DB{"words": words}
	st.Peers = map[string]status.Peer{
		"node2:9599": {Traffic: status.Traffic{Requests: 1326}, Disk: status.Disk{Bytes: 100, Free: 1, Low: true}},
		"node3:9599": {Error: "connection refused"},
	}
	got := frame(t, shown(t, st), 100, 20)
	for _, want := range []string{
		"3 nodes: 2,660 requests a second", "words      2            2,660", "NODE", "node1:9599      1,334   1.2 ms",
		"node2:9599      1,326", "has not found the newest version of words", "did not answer: connection refused",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// While the node does not answer, the last status stays, with its age.
func TestNoAnswer(t *testing.T) {
	v := top.New("http://node1:9599", term.Console{})
	if got := frame(t, v, 80, 5); !strings.Contains(got, "asking the node") {
		t.Errorf("at first:\n%s", got)
	}
	v.Update(nil, errors.New("http://node1:9599 refuses the connection"), now)
	if got := frame(t, v, 80, 5); !strings.Contains(got, "refuses the connection") {
		t.Errorf("without a first answer:\n%s", got)
	}
	v.Update(single(), nil, now.Add(-12*time.Second))
	v.Update(nil, errors.New("http://node1:9599 refuses the connection"), now)
	if got := frame(t, v, 120, 24); !strings.Contains(got, "what follows is 12 s old: http://node1:9599 refuses the connection") || !strings.Contains(got, "> birds") {
		t.Errorf("while it is away:\n%s", got)
	}
	v.Update(single(), nil, now)
	if got := frame(t, v, 120, 24); strings.Contains(got, " old: ") {
		t.Errorf("when it is back:\n%s", got)
	}
}

// order returns the databases as they are shown, the selected one with an asterisk.
func order(t *testing.T, v *top.View, height int) string {
	t.Helper()
	var names []string
	for _, line := range strings.Split(frame(t, v, 100, height), "\n")[4:] {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[0] == ">":
			names = append(names, fields[1]+"*")
		case len(fields) > 2 && strings.HasPrefix(fields[0], "db"):
			names = append(names, fields[0])
		}
	}
	return strings.Join(names, " ")
}

func typeKeys(v *top.View, keys ...top.Key) {
	for _, k := range keys {
		v.Key(k)
	}
}

func TestKeysOfTheView(t *testing.T) {
	st := &status.Status{Health: "Serving.", DBs: map[string]status.DB{}}
	for i := range 9 {
		st.DBs[fmt.Sprintf("db%d", i)] = status.DB{Traffic: status.Traffic{Requests: float64(100 - 10*(i%4)), Misses: float64(i), P99: float64((i*5)%9 + 1)}}
	}
	v := shown(t, st)
	for _, step := range []struct {
		keys []top.Key
		want string
	}{
		{nil, "db0* db1 db2 db3"},
		{[]top.Key{'j', top.Down}, "db0 db1 db2* db3"},
		{[]top.Key{'j', 'j'}, "db1 db2 db3 db4*"},
		{[]top.Key{'k', top.Up, 'k', 'k', 'k', 'k'}, "db0* db1 db2 db3"},
		{[]top.Key{'G'}, "db5 db6 db7 db8*"},
		{[]top.Key{top.PageUp}, "db5* db6 db7 db8"},
		{[]top.Key{top.Home, top.PageDown, ' '}, "db5 db6* db7 db8"},
		{[]top.Key{'g', 's'}, "db0* db4 db8 db1"}, // requests
		{[]top.Key{'s', 'g'}, "db7* db8 db6 db5"}, // share of misses
		{[]top.Key{'s', 'g'}, "db7* db5 db3 db1"}, // latency
		{[]top.Key{'r', 'g'}, "db0* db2 db4 db6"},
		{[]top.Key{'s', 'g'}, "db0* db1 db2 db3"},
		{[]top.Key{'/', 'd', 'b', '7', top.Enter}, "db7*"},
		{[]top.Key{'/', top.Backspace, '6', top.Enter}, "db6*"},
		{[]top.Key{'/', 'x'}, ""},
		{[]top.Key{top.Escape, 'g'}, "db0* db1 db2 db3"},
		{[]top.Key{'/', 'q', 'j', top.CtrlU, '8'}, "db8*"}, // letters are no commands then
		{[]top.Key{top.Enter, top.Escape, top.End}, "db5 db6 db7 db8*"},
	} {
		typeKeys(v, step.keys...)
		order(t, v, 9) // the number that fits is known then
		if got := order(t, v, 9); got != step.want {
			t.Fatalf("after %v: %s, want %s", step.keys, got, step.want)
		}
	}
	for _, k := range []top.Key{'q', top.CtrlC} {
		if !v.Key(k) {
			t.Errorf("%v does not quit", k)
		}
	}
	typeKeys(v, '/')
	if v.Key('q') || !v.Key(top.CtrlC) {
		t.Error("in the filter, q quits or ^C does not")
	}
	v.Update(&status.Status{DBs: map[string]status.DB{}}, nil, now)
	typeKeys(v, 'j', 'k', 'G', top.Escape)
	if got := frame(t, v, 80, 9); !strings.Contains(got, "no database") {
		t.Errorf("%s", got)
	}
}

// Colors change nothing but colors.
func TestColors(t *testing.T) {
	with := top.New("http://node1:9599", term.Console{Colors: true})
	with.Update(single(), nil, now)
	colored := frame(t, with, 90, 24)
	if got, want := colors.ReplaceAllString(colored, ""), frame(t, shown(t, single()), 90, 24); got != want {
		t.Errorf("(-without +with):\n%s", cmp.Diff(want, got))
	}
	if !strings.Contains(colored, "\x1b[36mBUILDING\x1b[0m") {
		t.Errorf("%q", colored)
	}
}
