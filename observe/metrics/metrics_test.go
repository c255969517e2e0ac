package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// scrape returns the lines of a scrape that begin with prefix.
func scrape(t *testing.T, m *Metrics, prefix string) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	var lines []string
	for l := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(l, prefix) {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	return lines
}

func wantLines(t *testing.T, m *Metrics, prefix string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, scrape(t, m, prefix)); diff != "" {
		t.Errorf("lines of %s (-want +got):\n%s", prefix, diff)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	m := New()
	r := m.Server.DB("a").Clients
	if m.Server.DB("a").Clients != r {
		t.Fatal("a second DB of the same name has counters of its own")
	}
	r.Done(0, 200, 1500*time.Nanosecond, 100)
	r.Done(1, 200, 2*time.Microsecond, 50)
	r.Done(77, 404, time.Minute, 0)
	r.Done(2, 299, time.Millisecond, 7)
	r.Read(2, 3)
	r.Read(3, 1)
	r.Done(3, -1, -time.Second, -5)
	m.Server.Unknown.Clients.Done(0, 404, 1, 1)
	peers := m.Server.DB("a").Of(true)
	peers.Done(0, 501, time.Second, 10)
	peers.Read(0, 10)

	wantLines(t, m, "sequins_requests_total",
		`sequins_requests_total{code="200",db="a",route="key"} 2`,
		`sequins_requests_total{code="404",db="",route="key"} 1`,
		`sequins_requests_total{code="404",db="a",route="key"} 1`,
		`sequins_requests_total{code="501",db="a",route="peer"} 1`,
		`sequins_requests_total{code="other",db="a",route="key"} 2`)
	wantLines(t, m, `sequins_response_bytes_total{db="a"`,
		`sequins_response_bytes_total{db="a",route="key"} 157`,
		`sequins_response_bytes_total{db="a",route="peer"} 10`)
	wantLines(t, m, `sequins_request_duration_seconds_bucket{db="a",route="key",le="1e-06"`,
		`sequins_request_duration_seconds_bucket{db="a",route="key",le="1e-06"} 1`)
	wantLines(t, m, `sequins_request_duration_seconds_bucket{db="a",route="key",le="2e-06"`,
		`sequins_request_duration_seconds_bucket{db="a",route="key",le="2e-06"} 3`)
	wantLines(t, m, `sequins_request_duration_seconds_bucket{db="a",route="key",le="10"`,
		`sequins_request_duration_seconds_bucket{db="a",route="key",le="10"} 4`)
	wantLines(t, m, `sequins_request_duration_seconds_count{db="a"`,
		`sequins_request_duration_seconds_count{db="a",route="key"} 5`,
		`sequins_request_duration_seconds_count{db="a",route="peer"} 1`)
	wantLines(t, m, `sequins_request_duration_seconds_sum{db="a"`,
		`sequins_request_duration_seconds_sum{db="a",route="key"} 60.0010035`,
		`sequins_request_duration_seconds_sum{db="a",route="peer"} 1`)

	wantLines(t, m, "sequins_block_reads_total", `sequins_block_reads_total{db="a"} 14`)

	m.Server.Forget("a")
	if got := scrape(t, m, `sequins_requests_total{code="200"`); got != nil {
		t.Errorf("after Forget: %q", got)
	}
}

func TestEveryCodeHasItsOwnCounter(t *testing.T) {
	m := New()
	r := m.Server.DB("a").Clients
	for i, c := range codes {
		for range i + 1 {
			r.Done(uint32(i), c, 0, 0)
		}
	}
	got := r.totals().codes
	for i := range codes {
		if got[i] != uint64(i+1) {
			t.Errorf("code %d counted %d times, want %d", codes[i], got[i], i+1)
		}
	}
}

func TestBuckets(t *testing.T) {
	for i, b := range bounds {
		if i > 0 && bounds[i-1] >= b {
			t.Errorf("bounds[%d] = %v does not ascend", i, b)
		}
		if got := bucket(b); got != i {
			t.Errorf("bucket(%v) = %d, want %d", b, got, i)
		}
		if got := bucket(b + 1); got != i+1 {
			t.Errorf("bucket(%v) = %d, want %d", b+1, got, i+1)
		}
	}
}

func TestConcurrentRequestsAddUp(t *testing.T) {
	m := New()
	const workers, each = 8, 1000
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := m.Server.DB("a").Clients
			for range each {
				m.Server.Begin(uint32(w))
				r.Done(uint32(w), 200, time.Microsecond, 1)
				m.Server.End(uint32(w))
			}
		})
	}
	wg.Wait()
	if got := m.Server.DB("a").Clients.totals(); got.codes[0] != workers*each || got.bytes != workers*each {
		t.Errorf("counted %d requests and %d bytes, want %d", got.codes[0], got.bytes, workers*each)
	}
	wantLines(t, m, "sequins_requests_in_flight", "sequins_requests_in_flight 0")
	m.Server.Begin(3)
	wantLines(t, m, "sequins_requests_in_flight", "sequins_requests_in_flight 1")
}

func TestStateGauges(t *testing.T) {
	m := New()
	if got := scrape(t, m, "sequins_versions"); got != nil {
		t.Errorf("before SetState: %q", got)
	}
	at := time.Unix(1_700_000_000, 500e6)
	m.Server.SetState(func() State {
		return State{Connections: 3, Status: status.Status{Node: "n", Draining: true, Waiting: []status.Wait{{For: status.WaitForLoad}, {For: status.WaitForLoad, Blocks: true}, {For: status.WaitForNodes}}, SourceErrorSince: at, DBs: map[string]status.DB{
			"a": {Versions: map[string]status.Version{
				"7": {NumPartitions: 4, MissingPartitions: 1, UnderreplicatedPartitions: 2, Nodes: map[string]status.OnNode{
					"n": {State: status.Active, Current: true, ActiveAt: at, LastModified: at, Records: 5, Bytes: 6},
				}},
				"8":  {Nodes: map[string]status.OnNode{"n": {State: status.Error}}},
				"81": {Nodes: map[string]status.OnNode{"n": {State: status.Held}}},
				"9":  {Nodes: map[string]status.OnNode{"n": {State: status.Error}, "other": {State: status.Active, Current: true}}},
			}},
			"b": {Versions: map[string]status.Version{
				"1": {Nodes: map[string]status.OnNode{"n": {State: status.Building, Records: 9}}},
				"2": {Nodes: map[string]status.OnNode{"other": {State: status.Active, Current: true}}},
			}},
		}}}
	})
	m.Server.ChecksumFailure("a")
	for prefix, want := range map[string][]string{
		"sequins_connections": {"sequins_connections 3"},
		"sequins_ready":       {"sequins_ready 0"},
		"sequins_waiting": {`sequins_waiting{for="disk"} 0`, `sequins_waiting{for="load"} 2`, `sequins_waiting{for="nodes"} 1`,
			`sequins_waiting{for="source"} 0`, `sequins_waiting{for="zookeeper"} 0`},
		"sequins_checksum":         {`sequins_checksum_failures_total{db="a"} 1`},
		"sequins_source_u":         {"sequins_source_unreachable_since_timestamp_seconds 1.7000000005e+09"},
		"sequins_last_refresh":     {"sequins_last_refresh_timestamp_seconds 0"},
		"sequins_version_records":  {`sequins_version_records{db="a"} 5`},
		"sequins_version_bytes":    {`sequins_version_bytes{db="a"} 6`},
		"sequins_version_active_":  {`sequins_version_active_timestamp_seconds{db="a"} 1.7000000005e+09`},
		"sequins_version_last_mod": {`sequins_version_last_modified_timestamp_seconds{db="a"} 1.7000000005e+09`},
		"sequins_store_blocks":     {"sequins_store_blocks_bytes 6"},
		"sequins_version_info":     {`sequins_version_info{db="a",version="7"} 1`},
		"sequins_version_partitions": {
			`sequins_version_partitions_missing{db="a"} 1`,
			`sequins_version_partitions_underreplicated{db="a"} 2`,
		},
		"sequins_versions": {
			`sequins_versions{db="a",state="ACTIVE"} 1`,
			`sequins_versions{db="a",state="ERROR"} 2`,
			`sequins_versions{db="a",state="HELD"} 1`,
			`sequins_versions{db="b",state="BUILDING"} 1`,
		},
	} {
		wantLines(t, m, prefix, want...)
	}
}

func TestLoad(t *testing.T) {
	m := New()
	done := m.Load.Begin("a")
	failed := m.Load.Begin("a")
	cancelled := m.Load.Begin("a")
	wantLines(t, m, "sequins_loads_running", `sequins_loads_running{db="a"} 3`)
	m.Load.Bytes.Add(111, "a")
	m.Load.Records.Add(3, "a")
	done(nil)
	failed(errors.New("disk full"))
	cancelled(fmt.Errorf("loading: %w", context.Canceled))
	wantLines(t, m, "sequins_loads_running", `sequins_loads_running{db="a"} 0`)
	wantLines(t, m, "sequins_load_bytes", `sequins_load_bytes_total{db="a"} 111`)
	wantLines(t, m, "sequins_load_records", `sequins_load_records_total{db="a"} 3`)
	wantLines(t, m, "sequins_load_failures", `sequins_load_failures_total{db="a"} 1`)
	wantLines(t, m, "sequins_load_duration_seconds_count", `sequins_load_duration_seconds_count{db="a"} 1`)
	m.Forget("a")
	if got := scrape(t, m, "sequins_load"); got != nil {
		t.Errorf("after Forget: %q", got)
	}

	m.Transfer.Received.Add(7, "b")
	m.Forget("b")
	if got := scrape(t, m, `sequins_peer_received`); got != nil {
		t.Errorf("after Forget: %q", got)
	}

	var none Load
	none.Begin("a")(nil)
	none.Bytes.Add(1, "a")
}

func TestProxy(t *testing.T) {
	m := New()
	for range 3 {
		m.Proxy.InFlight.Add(1)
	}
	m.Proxy.Done(1, ZoneUnknown, ProxyOK)
	m.Proxy.Done(7, ZoneOther, ProxyCancelled)
	m.Proxy.Opened.Add(2)
	m.Proxy.Open.Add(1)
	wantLines(t, m, "sequins_proxy_connections", "sequins_proxy_connections 1", "sequins_proxy_connections_opened_total 2")
	wantLines(t, m, "sequins_proxy_attempts_in_flight", "sequins_proxy_attempts_in_flight 1")
	wantLines(t, m, `sequins_proxy_attempts_total{outcome="ok",stage="1"`, `sequins_proxy_attempts_total{outcome="ok",stage="1",zone="other"} 0`,
		`sequins_proxy_attempts_total{outcome="ok",stage="1",zone="same"} 0`, `sequins_proxy_attempts_total{outcome="ok",stage="1",zone="unknown"} 1`)
	wantLines(t, m, `sequins_proxy_attempts_total{outcome="cancelled",stage="3+"`, `sequins_proxy_attempts_total{outcome="cancelled",stage="3+",zone="other"} 1`,
		`sequins_proxy_attempts_total{outcome="cancelled",stage="3+",zone="same"} 0`, `sequins_proxy_attempts_total{outcome="cancelled",stage="3+",zone="unknown"} 0`)
	if got := scrape(t, m, "sequins_proxy_attempts_total"); len(got) != 45 {
		t.Errorf("%d lines: %q", len(got), got)
	}
}

// All metrics follow Prometheus's rules for names and help texts.
func TestGatherIsConsistent(t *testing.T) {
	m := New()
	m.Server.DB("a").Clients.Done(0, 200, 1, 1)
	m.Load.Begin("a")(nil)
	families, err := m.Registry().Gather()
	expect.NoError(t, err)
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
	}
}

func TestDoneDoesNotAllocate(t *testing.T) {
	r := New().Server.DB("a").Clients
	if n := testing.AllocsPerRun(100, func() { r.Done(1, 200, 3*time.Microsecond, 100) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDone(b *testing.B) {
	r := New().Server.DB("a").Clients
	b.RunParallel(func(pb *testing.PB) {
		s := nextStripe()
		for pb.Next() {
			r.Done(s, 200, 3*time.Microsecond, 100)
		}
	})
}

// BenchmarkDonePrometheus does the same with client_golang, with the children
// looked up beforehand.
func BenchmarkDonePrometheus(b *testing.B) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: shownBounds()})
	code := prometheus.NewCounter(prometheus.CounterOpts{Name: "c"})
	bytes := prometheus.NewCounter(prometheus.CounterOpts{Name: "b"})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			code.Inc()
			bytes.Add(100)
			h.Observe((3 * time.Microsecond).Seconds())
		}
	})
}

var (
	stripeMu sync.Mutex
	stripeNo uint32
)

func nextStripe() uint32 {
	stripeMu.Lock()
	defer stripeMu.Unlock()
	stripeNo++
	return stripeNo
}
