package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// walkKeys is the number of keys in the versions of the walk. Each third key is in each third version only.
const walkKeys = 100

func walkKey(i int) string { return fmt.Sprintf("key-%d", i) }

func walkValue(i int, version string) (value string, there bool) {
	var n int
	fmt.Sscanf(version, "v%d", &n) //nolint:errcheck // then it is 0
	return version + "/" + walkKey(i), i%3 != 0 || n%3 == 0
}

func walkRecords(version string) map[string]string {
	records := map[string]string{}
	for i := range walkKeys {
		if value, there := walkValue(i, version); there {
			records[walkKey(i)] = value
		}
	}
	return records
}

// walk disturbs nodes while readers read.
type walk struct {
	nodes []*fake
	next  []int // the version of each node
	reads atomic.Int64
	stop  atomic.Bool
}

// TestRandomWalk: nodes change versions one after the other, hang, fail, deny, and name nodes that do not exist. The node
// that the client is configured with is left alone. No read fails, is wrong, or is older than one before in its session.
func TestRandomWalk(t *testing.T) {
	w := &walk{}
	for range 4 {
		w.nodes, w.next = append(w.nodes, startFake(t, "v1000", walkRecords("v1000"))), append(w.next, 1000)
	}
	c := newClient(t, client.Options{AttemptTimeout: 500 * time.Millisecond, Timeout: time.Minute, RefreshPeriod: 50 * time.Millisecond}, w.nodes[0])
	shared := c.Session()
	var readers sync.WaitGroup
	for i := range 6 {
		readers.Go(func() {
			if i < 2 {
				w.read(t, shared)
			} else {
				w.read(t, c.Session())
			}
		})
	}
	for range 150 {
		w.disturb()
		before := w.reads.Load()
		expect.Eventually(t, "the readers read on", func() bool { return w.reads.Load() > before+20 })
	}
	w.stop.Store(true)
	for _, n := range w.nodes {
		n.misbehave(nil)
	}
	readers.Wait()
	t.Logf("%d reads, up to version v%d", w.reads.Load(), w.next[0])
}

// disturb changes one thing.
func (w *walk) disturb() {
	i := rand.IntN(len(w.nodes))
	switch rand.IntN(6) {
	case 0, 1: // the configured node is as new as any
		if w.next[i]++; w.next[0] < w.next[i] {
			w.upgrade(0, w.next[i])
		}
		w.upgrade(i, w.next[i])
	case 2:
		nodes := []string{"127.0.0.1:1", w.nodes[i].addr}
		for _, n := range w.nodes {
			nodes = append(nodes, n.addr)
		}
		first := rand.IntN(len(nodes))
		w.nodes[rand.IntN(len(w.nodes))].say(1+rand.IntN(5), nodes[first:1+first+rand.IntN(len(nodes)-first)]...)
	case 3:
		w.misbehave(i, nil)
	case 4:
		w.misbehave(i, hang)
	case 5:
		status := []int{401, 403, 404, 412, 500, 501, 502, 503, 504}[rand.IntN(9)]
		w.misbehave(i, func(rw http.ResponseWriter, _ *http.Request) bool {
			http.Error(rw, "no", status)
			return true
		})
	}
}

func (w *walk) upgrade(i, version int) {
	w.next[i] = version
	name := fmt.Sprintf("v%d", version)
	w.nodes[i].upgrade(name, walkRecords(name))
}

// misbehave makes a node misbehave, unless it is the configured one.
func (w *walk) misbehave(i int, instead func(http.ResponseWriter, *http.Request) bool) {
	if i > 0 {
		w.nodes[i].misbehave(instead)
	}
}

// read reads until the end.
func (w *walk) read(t *testing.T, s *client.Session) {
	last := ""
	for !w.stop.Load() {
		i := rand.IntN(walkKeys)
		key := []byte(walkKey(i))
		var version string
		var data []byte
		var err error
		if rand.IntN(3) == 0 {
			var b client.Batch
			if b, err = s.MultiGet(t.Context(), "db", [][]byte{[]byte("x"), key}); err == nil {
				version, data = b.Version, b.Values[1]
			}
		} else {
			var v client.Value
			v, err = s.Get(t.Context(), "db", key)
			version, data = v.Version, v.Data
		}
		want, there := walkValue(i, version)
		switch {
		case err != nil && !errors.Is(err, client.ErrNotFound):
			t.Errorf("%s: %v", key, err)
		case there != (data != nil) || there && string(data) != want:
			t.Errorf("%s in %s is %q", key, version, data)
		case version < last:
			t.Errorf("a session goes back from %s to %s", last, version)
		}
		last = max(last, version)
		w.reads.Add(1)
	}
}
