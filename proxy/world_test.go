package proxy

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"sequins/observe/metrics"
	"sequins/test/expect"
)

// world is a client and some peers with a clock of their own.
type world struct {
	*testing.T
	*Client
	peers []*fakePeer
	pipes *pipes
	logs  *expect.Output
}

// The times of the client in a world.
const (
	stageTime = 100 * time.Millisecond
	raceTime  = time.Second
)

// inWorld runs a test with n peers, a, b, c…, that answer with their name.
func inWorld(t *testing.T, n int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t}
		for i := range n {
			name := string(rune('a' + i))
			w.peers = append(w.peers, newFake(name, says(answer(200, name))))
		}
		w.pipes = newPipes(w.peers...)
		var o Options
		o, w.logs = quiet(Options{Timeout: raceTime, StageTimeout: stageTime})
		w.Client = newClient(o, w.pipes.dial)
		test(w)
		w.Close()
		w.pipes.stop()
		if n := w.inFlight(); n != 0 {
			t.Errorf("%v attempts are in flight in the end", n)
		}
		if n := number(w.metrics, "sequins_proxy_connections"); n != 0 {
			t.Errorf("%v connections are open in the end", n)
		}
	})
}

// warm leaves every peer with one idle connection.
func (w *world) warm() {
	w.Helper()
	for _, p := range w.peers {
		if _, err := fetch(w.Client, query(p)); err != nil {
			w.Fatal(err)
		}
	}
}

// first makes the i-th peer the one that is asked first.
func (w *world) first(i int) {
	for j, p := range w.peers {
		known := w.peer(p.addr)
		known.cost.Store(0)
		if j != i {
			known.cost.Store(int64(raceTime))
			known.retryAt.Store(1 << 62)
		}
	}
}

// ask fetches from all peers, and wants it to take that long.
func (w *world) ask(took time.Duration) (got, error) {
	w.Helper()
	begun := time.Now()
	g, err := fetch(w.Client, query(w.peers...))
	if d := time.Since(begun); d != took {
		w.Errorf("it took %v, want %v", d, took)
	}
	return g, err
}

// wantFrom asks, and wants the answer to be that of a peer.
func (w *world) wantFrom(i int, took time.Duration) {
	w.Helper()
	g, err := w.ask(took)
	if name := w.peers[i].addr; err != nil || g.body != name || g.peer != name {
		w.Errorf("%+v, %v; want an answer from %s", g, err, name)
	}
}

func (w *world) inFlight() float64 { return number(w.metrics, "sequins_proxy_attempts_in_flight") }

// counted are the attempts so far, as "stage outcome": number. One beside the caller is
// counted after the race has been told of it.
func (w *world) counted() map[string]int {
	synctest.Wait()
	all := map[string]int{}
	for labels, n := range numbers(w.metrics, "sequins_proxy_attempts_total", "stage", "outcome") {
		if n > 0 {
			all[labels] = int(n)
		}
	}
	return all
}

func (w *world) wantCounted(want map[string]int) {
	w.Helper()
	if diff := cmp.Diff(want, w.counted()); diff != "" {
		w.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// registries are those of the metrics of quiet, by *metrics.Proxy.
var registries sync.Map

// numbers are those of one metric, by the values of some of its labels.
func numbers(p *metrics.Proxy, name string, by ...string) map[string]float64 {
	reg, _ := registries.Load(p)
	families, err := reg.(*prometheus.Registry).Gather()
	if err != nil {
		panic(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			values := make([]string, len(by))
			for _, l := range m.GetLabel() {
				if i := slices.Index(by, l.GetName()); i >= 0 {
					values[i] = l.GetValue()
				}
			}
			all[strings.Join(values, " ")] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func number(p *metrics.Proxy, name string) float64 { return numbers(p, name)[""] }
