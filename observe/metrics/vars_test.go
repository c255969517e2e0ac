package metrics

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"

	"github.com/google/go-cmp/cmp"
)

// QPS and Latency cover the last whole period, and only requests of clients.
func TestVarsOfTheLastPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			m.Server.FollowTraffic(ctx)
			close(ended)
		}()
		period := func() Vars {
			time.Sleep(trafficPeriod)
			synctest.Wait()
			return m.Server.Vars()
		}
		a, b := m.Server.DB("a"), m.Server.DB("b")
		synctest.Wait()
		for i := range 90 {
			a.Clients.Done(uint32(i), 200, 10*time.Microsecond, 5)
		}
		for range 10 {
			b.Clients.Done(0, 404, 2*time.Millisecond, 0)
		}
		m.Server.Unknown.Clients.Done(0, 404, 10*time.Microsecond, 0)
		a.Clients.Done(0, 206, 10*time.Microsecond, 1)
		a.Peers.Done(0, 501, time.Hour, 0)
		if v := m.Server.Vars(); v.QPS.Total != 0 {
			t.Errorf("in the middle of a period: %+v", v.QPS)
		}
		v := period() // of five seconds
		want := QPS{Total: 22, ByStatus: map[string]int64{"200": 18, "206": 1, "400": 0, "404": 3, "499": 0, "500": 0, "501": 0, "502": 0, "504": 0}}
		if diff := cmp.Diff(want, v.QPS); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if mean := (92*.010 + 10*2) / 102; math.Abs(v.Latency.Mean-mean) > 1e-9 {
			t.Errorf("the mean is %v ms, want %v", v.Latency.Mean, mean)
		}
		near(t, "the median", v.Latency.P50, .010)
		near(t, "P90", v.Latency.P90, .010)
		near(t, "P95", v.Latency.P95, 2)
		near(t, "the maximum", v.Latency.Max, 2)

		m.Server.Forget("a") // drops its counters
		b.Clients.Done(0, 200, time.Millisecond, 1)
		if v := period(); v.QPS.ByStatus["200"] != 1 || v.QPS.Total != 1 {
			t.Errorf("in the period in which a db goes: %+v", v.QPS)
		}
		if v := period(); v.QPS.Total != 0 || v.Latency != (Latency{}) {
			t.Errorf("in an idle period: %+v", v)
		}
		cancel()
		<-ended
	})
}

// near compares with the accuracy of the histogram, whose buckets are 20 % wide.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want/1.2 || got > want*1.2 {
		t.Errorf("%s is %v ms, want about %v", what, got, want)
	}
}

func TestQuantiles(t *testing.T) {
	r := newRequests(RouteKey, "a")
	for i := range 1000 {
		r.Done(0, 200, time.Duration(i+1)*time.Millisecond, 0)
	}
	sum := r.totals()
	l := sum.latency()
	for _, p := range []struct{ got, want float64 }{{l.P25, 250}, {l.P50, 500}, {l.P75, 750}, {l.P90, 900}, {l.P95, 950}, {l.P99, 990}, {l.P9999, 1000}, {l.Max, 1000}} {
		near(t, "a quantile", p.got, p.want)
	}
	if all := []float64{l.P25, l.P50, l.P75, l.P90, l.P95, l.P99, l.P9999, l.Max}; !slices.IsSorted(all) {
		t.Errorf("they do not ascend: %v", all)
	}
	r.Done(0, 200, time.Hour, 0) // above the last bucket
	sum = r.totals()
	if l := sum.latency(); l.Max != 841e3 {
		t.Errorf("the longest is %v ms", l.Max)
	}
}

// Names and types are those of Stripe's sequins.
func TestVarsAreNamedAsEver(t *testing.T) {
	m := New()
	m.Server.SetState(func() State {
		return State{
			Status: status.Status{Node: "n", DBs: map[string]status.DB{"a": {Versions: map[string]status.Version{"1": {Nodes: map[string]status.OnNode{"n": {Bytes: 7}}}}}}},
		}
	})
	text, err := json.Marshal(m.Server.Vars())
	expect.NoError(t, err)
	const want = `{"Qps":{"Total":0,"ByStatus":{"200":0,"400":0,"404":0,"499":0,"500":0,"501":0,"502":0,"504":0}},` +
		`"Latency":{"Max":0,"Mean":0,"P9999":0,"P99":0,"P95":0,"P90":0,"P75":0,"P50":0,"P25":0},"DiskUsed":7}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
