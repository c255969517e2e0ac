package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"sequins/observe/status"
	"sequins/test/expect"
)

func TestThereAreAsManyBucketsAsCounters(t *testing.T) {
	if bucketCount != len(bounds)+1 || len(bounds) > math.MaxUint8 {
		t.Errorf("%d counters for %d bounds", bucketCount, len(bounds))
	}
}

// shownBounds are the bounds of histograms: 1, 2 and 5 of each decade.
func shownBounds() (all []float64) {
	for i, b := range bounds {
		if isShown(i) {
			all = append(all, b.Seconds())
		}
	}
	return all
}

// The bounds of histograms are those that dashboards and recorded histograms have.
func TestBoundsOfHistograms(t *testing.T) {
	want := []float64{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}
	if got := shownBounds(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, b := range bounds[1:] {
		if ratio := b.Seconds() / bounds[i].Seconds(); ratio > 1.203 {
			t.Errorf("%v is %v times the bound before", b, ratio)
		}
	}
}

// The histogram is the one of client_golang.
func TestHistogramAgreesWithPrometheus(t *testing.T) {
	durations := []time.Duration{-5, 0, 1, 953, 954, 1000, 1001, 1e9, 1e9 + 1, 10e9, 11e9, 1 << 30, 512e9, time.Hour}
	for range 5000 {
		durations = append(durations, time.Duration(math.Exp2(rand.Float64()*38.8)))
	}
	classic := shownBounds()
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: classic})
	m := New()
	r := m.Server.DB("a").Clients
	for i, d := range durations {
		r.Done(uint32(i), 200, d, 0)
		theirs.Observe(max(d, 0).Seconds())
	}
	totals := r.totals()
	var want, got dto.Metric
	expect.NoError(t, errors.Join(theirs.Write(&want), histogram(prometheus.NewDesc("h", "", []string{"route", "db"}, nil), &totals.buckets, 0, "key", "a").Write(&got)))
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
	if m.Process.Disk() != nil {
		t.Errorf("without a store: %+v", m.Process.Disk())
	}
	m.Process.SetStore(t.TempDir())
	if d := m.Process.Disk(); d == nil || d.Bytes <= 0 || d.Free <= 0 {
		t.Errorf("the disk is %+v", d)
	}
	st := status.Status{Build: "v1.2.3"}
	m.Server.SetState(func() State { return State{Status: st} })
	wantLines(t, m, "sequins_config_last_reload_successful", "sequins_config_last_reload_successful 1")
	if got := scrape(t, m, "sequins_store_free"); got != nil {
		t.Errorf("of a disk that is not known: %q", got)
	}
	st.TokensError, st.Disk = "line 1", status.Disk{Bytes: 10, Free: 5}
	wantLines(t, m, "sequins_config_last_reload_successful", "sequins_config_last_reload_successful 0")
	wantLines(t, m, "sequins_store_free", "sequins_store_free_bytes 5")
	if got := scrape(t, m, "sequins_build_info{"); len(got) != 1 || !strings.Contains(got[0], "v1.2.3") {
		t.Errorf("%q", got)
	}
	m.Process.SetStore("/nowhere")
	if got := m.Process.Disk(); got != nil {
		t.Errorf("of a directory that is not there: %+v", got)
	}
}
