package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestThereAreAsManyBucketsAsCounters(t *testing.T) {
	if bucketCount != len(bounds)+1 || len(bounds) > math.MaxUint8 {
		t.Errorf("%d counters for %d bounds", bucketCount, len(bounds))
	}
}

// The histogram is the one of client_golang.
func TestHistogramAgreesWithPrometheus(t *testing.T) {
	durations := []time.Duration{-5, 0, 1, 953, 954, 1000, 1001, 1e9, 1e9 + 1, 10e9, 11e9, 1 << 30, 512e9, time.Hour}
	for range 5000 {
		durations = append(durations, time.Duration(math.Exp2(rand.Float64()*38.8)))
	}
	classic := make([]float64, len(classicBounds))
	for i, b := range classicBounds {
		classic[i] = b.Seconds()
	}
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: classic})
	m := New()
	r := m.Server.DB("a").Clients
	for i, d := range durations {
		r.Done(uint32(i), 200, d, 0)
		theirs.Observe(max(d, 0).Seconds())
	}
	totals := r.totals()
	var want, got dto.Metric
	if err := errors.Join(theirs.Write(&want), histogram(requestDuration.desc, &totals.buckets, 0, nil, "key", "a").Write(&got)); err != nil {
		t.Fatal(err)
	}
	for i, b := range want.GetHistogram().GetBucket() {
		ours := got.GetHistogram().GetBucket()[i]
		if ours.GetUpperBound() != b.GetUpperBound() || ours.GetCumulativeCount() != b.GetCumulativeCount() {
			t.Errorf("up to %v s: %v, want %v", b.GetUpperBound(), ours, b.GetCumulativeCount())
		}
	}
	if n := got.GetHistogram().GetSampleCount(); n != uint64(len(durations)) {
		t.Errorf("%d of %d", n, len(durations))
	}
}

func TestProcess(t *testing.T) {
	m := New()
	if got := scrape(t, m, "sequins_store"); got != nil {
		t.Errorf("without a store: %q", got)
	}
	m.Process.SetBuild("v1.2.3")
	m.Process.SetStore(t.TempDir())
	wantLines(t, m, "sequins_config_last_reload_successful", "sequins_config_last_reload_successful 1")
	m.Process.Configured(false)
	wantLines(t, m, "sequins_config_last_reload_successful", "sequins_config_last_reload_successful 0")
	if got := scrape(t, m, "sequins_build_info{"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if got := scrape(t, m, "sequins_store"); len(got) != 1 || got[0] == "sequins_store_free_bytes 0" {
		t.Errorf("%q", got)
	}
	m.Process.SetStore("/nowhere")
	if got := scrape(t, m, "sequins_store"); got != nil {
		t.Errorf("of a directory that is not there: %q", got)
	}
}
