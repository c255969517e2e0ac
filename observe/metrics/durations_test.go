package metrics

import (
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func TestThereAreAsManyBucketsAsCounters(t *testing.T) {
	if bucketCount != len(bounds)+1 || len(bounds) > math.MaxUint8 {
		t.Errorf("%d counters for %d bounds", bucketCount, len(bounds))
	}
}

// Both histograms give the same results as those of client_golang.
func TestHistogramsAgreeWithPrometheus(t *testing.T) {
	durations := []time.Duration{-5, 0, 1, 953, 954, 1000, 1001, 1e9, 1e9 + 1, 10e9, 11e9, 1 << 30, 512e9}
	for range 5000 {
		durations = append(durations, time.Duration(math.Exp2(rand.Float64()*38.8)))
	}
	classic := make([]float64, len(classicBounds))
	for i, b := range classicBounds {
		classic[i] = b.Seconds()
	}
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Buckets: classic, NativeHistogramBucketFactor: 1.2, NativeHistogramZeroThreshold: nativeZero,
	})
	r := newRequests("key", "a")
	for i, d := range durations {
		r.Done(uint32(i), 200, d, 0)
		theirs.Observe(max(d, 0).Seconds())
	}
	m := New()
	m.Server.DB("a").Clients = r
	ours := histogramOf(t, m, "a")
	var out dto.Metric
	if err := theirs.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := out.GetHistogram()
	for i, b := range want.GetBucket() {
		got := ours.GetBucket()[i]
		if got.GetUpperBound() != b.GetUpperBound() || got.GetCumulativeCount() != b.GetCumulativeCount() {
			t.Errorf("up to %v s: %v, want %v", b.GetUpperBound(), got, b.GetCumulativeCount())
		}
	}
	if ours.GetSchema() != want.GetSchema() || ours.GetZeroThreshold() != want.GetZeroThreshold() || ours.GetZeroCount() != want.GetZeroCount() ||
		ours.GetSampleCount() != uint64(len(durations)) {
		t.Errorf("%v\nwant %v", ours, want)
	}
	got, wanted := natives(ours), natives(want)
	for index := nativeFirst; index <= nativeLast; index++ {
		if got[index] != wanted[index] {
			t.Errorf("native bucket %d: %d, want %d", index, got[index], wanted[index])
		}
	}
	if len(got) != len(wanted) {
		t.Errorf("native buckets %v\nwant %v", got, wanted)
	}
}

// Durations above all buckets are counted in the last one.
func TestLongerThanAllBuckets(t *testing.T) {
	m := New()
	m.Server.DB("a").Clients.Done(0, 200, time.Hour, 0)
	h := histogramOf(t, m, "a")
	if got := natives(h); h.GetSampleCount() != 1 || len(got) != 1 || got[nativeLast] != 1 {
		t.Errorf("%v", h)
	}
}

// histogramOf returns the histogram of a db's requests, as scraped with native histograms.
func histogramOf(t *testing.T, m *Metrics, db string) *dto.Histogram {
	t.Helper()
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, req)
	d := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	for {
		var family dto.MetricFamily
		if err := d.Decode(&family); err != nil {
			t.Fatalf("no histogram of %s: %v", db, err)
		}
		if family.GetName() != "sequins_request_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "db" && label.GetValue() == db {
					return metric.GetHistogram()
				}
			}
		}
	}
}

// natives returns the non-empty native buckets by index.
func natives(h *dto.Histogram) map[int]int64 {
	found := map[int]int64{}
	index, n, next := 0, int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			n += h.GetPositiveDelta()[next]
			next++
			if n != 0 {
				found[index] = n
			}
			index++
		}
	}
	return found
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
