package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
	"sequins/version/pin"
)

var topNow = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// single returns the status of a single node that loads a version and holds another.
func single() *status.Status {
	loading := status.OnNode{State: status.Building, Detail: "loading"}
	loading.Progress = &status.Progress{Bytes: 200 << 20, BytesDone: 90 << 20, BytesPerSecond: 12 << 20, ETA: topNow.Add(2 * time.Minute)}
	on := func(n status.OnNode) status.Version {
		return status.Version{Nodes: map[string]status.OnNode{"localhost": n}}
	}
	serving := on(status.OnNode{State: status.Active, Current: true})
	st := &status.Status{
		Node: "localhost", Build: "v2.0.0", StartedAt: topNow.Add(-3 * time.Hour), Level: status.LevelWarn,
		Health:  "Serving 3 databases; 1 with a newer version that the gate holds.",
		Disk:    status.Disk{Bytes: 100 << 30, Free: 25 << 30},
		Traffic: status.Traffic{Requests: 1334.4, Misses: 120, Errors: 2, P50: 12e-6, P99: 1.25e-3},
		DBs: map[string]status.DB{
			"birds": {Versions: map[string]status.Version{"7": serving, "8": on(loading)}, Traffic: status.Traffic{Requests: 4.2, P50: 9e-6, P99: 20e-6}},
			"users": {Versions: map[string]status.Version{"2026-01-31": serving, "2026-02-01": on(status.OnNode{State: status.Held, Detail: "held: max_shrink: 400 records instead of 1,000\x1b[2J"})}},
			"words": {Versions: map[string]status.Version{"1": serving}, Traffic: status.Traffic{Requests: 1330, Misses: 120, P50: 12e-6, P99: 1.3e-3}, Pin: &pin.File{Version: "1", By: "ana"}},
		},
		Events: []status.Event{
			{Time: topNow.Add(-time.Minute), DB: "users", Version: "2026-02-01", Kind: status.EventHeld, Reason: "max_shrink"},
			{Time: topNow.Add(-time.Hour), DB: "words", Version: "1", Kind: status.EventActive},
		},
	}
	return st
}

// frame draws a status as top does.
func frame(st *status.Status, height int) string {
	v := topView{url: "http://node1:9599", st: st, at: topNow}
	return strings.Join(v.frame(height, topNow), "\n")
}

func TestTopFrame(t *testing.T) {
	want := `http://node1:9599, sequins v2.0.0, up for 3 h 0 min
Serving 3 databases; 1 with a newer version that the gate holds.
The pin of words: pinned to 1 (by ana)
1,334 requests a second, 9.0% missed, 2.0 errors, p50 12 µs, p99 1.2 ms

DATABASE  VERSION     REQ/S  MISS  P50    P99
words     1           1,330  9.0%  12 µs  1.3 ms
birds     7           4.2    0.0%  9 µs   20 µs
users     2026-01-31  0      0.0%  -      -

DATABASE  VERSION       STATE     PARTITIONS  RECORDS  SIZE  DATA FROM
birds     8             BUILDING  0 of 0      -        -     -          45%, about 2 min left, loading
          7 *           ACTIVE    0 of 0      -        -     -
users     2026-02-01    HELD      0 of 0      -        -     -          held: max_shrink: 400 records instead of 1,000\x1b[2J
          2026-01-31 *  ACTIVE    0 of 0      -        -     -
words     1 *           ACTIVE    0 of 0      -        -     -

NODE       SHARD  ZONE  BLOCKS  DISK FREE       OF
localhost  -      -     -       25.0 GiB (25%)  100.0 GiB

EVENTS
01-31 11:59:00 held users 2026-02-01: max_shrink
01-31 11:00:00 active words 1`
	if diff := cmp.Diff(want, frame(single(), 30)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every size is drawn, and the most important lines stay.
func TestTopSizes(t *testing.T) {
	for _, height := range []int{0, 1, 2, 3, 5, 8, 10, 24, 60} {
		if got := frame(single(), height); height > 0 && strings.Count(got, "\n") >= height {
			t.Errorf("%d lines: drawn\n%s", height, got)
		}
	}
	small := frame(single(), 8)
	for _, want := range []string{"http://node1:9599", "Serving 3 databases", "DATABASE", "words "} {
		if !strings.Contains(small, want) {
			t.Errorf("no %q in\n%s", want, small)
		}
	}
}

// Of a cluster there are the nodes, and the traffic of all.
func TestTopOfACluster(t *testing.T) {
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
		"node2:9599": {Traffic: status.Traffic{Requests: 1326}},
		"node3:9599": {Error: "connection refused"},
	}
	got := frame(st, 30)
	for _, want := range []string{
		"3 nodes: 2,660 requests a second", "words     2        2,660", "NODE", "did not answer: connection refused",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// While the node does not answer, the last status stays, with its age.
func TestTopWithoutAnAnswer(t *testing.T) {
	v := topView{url: "http://node1:9599", st: single(), at: topNow.Add(-12 * time.Second), failed: errors.New("http://node1:9599 refuses the connection")}
	got := strings.Join(v.frame(24, topNow), "\n")
	if !strings.Contains(got, "what follows is 12 s old: http://node1:9599 refuses the connection") || !strings.Contains(got, "\nbirds") {
		t.Error(got)
	}
}

// The databases with the most requests are first, those with as many by name.
func TestTopOrder(t *testing.T) {
	st := &status.Status{DBs: map[string]status.DB{}}
	for i := range 5 {
		st.DBs[fmt.Sprintf("db%d", i)] = status.DB{Traffic: status.Traffic{Requests: float64(100 - 10*(i%4))}}
	}
	v, got := topView{st: st}, ""
	for line := range strings.Lines(v.traffic()) {
		if name, ok := strings.CutPrefix(line, "db"); ok {
			got += name[:1]
		}
	}
	if want := "04123"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTopWithoutATerminal(t *testing.T) {
	sequins(t, "top", "--server", "127.0.0.1:1").wants(t, exitFailure, "sequins: top needs a terminal: use sequins status")
}
