package events_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sequins/node/events"
	"sequins/observe/metrics"
	"sequins/observe/status"
)

// recorder returns a recorder without a webhook, and its metrics.
func recorder(t *testing.T) (*events.Recorder, *metrics.Metrics) {
	t.Helper()
	m := metrics.New()
	r := events.New(events.Options{Node: "n1:9599", Metrics: m.Events})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, m
}

var quiet = slog.New(slog.DiscardHandler)

// tellAll records one event of each kind.
func tellAll(d *events.DB) {
	d.Found("2", false)
	d.Loaded("2", "1,000 records", "files", "4/4", "records", 1000)
	d.Held("2", "half of the records are missing")
	d.Approved("2", "by ana: it is right")
	d.Active("2", "1", 1234567*time.Microsecond)
	d.Pinned("1", "pinned to 1 (by ana)")
	d.RolledBack("1", "2", "wrong prices")
	d.Failed("3", "ERROR", "part-r-00001:\n  damaged", "")
	d.Failed("3", "ERROR", "needs 310.2 GiB, 2 TiB are free: 00001.block.18.tmp", "needs 9 MiB, 1.5 GiB are free: 00001.block.9.tmp")
	d.Removed("2", false)
}

// Each kind of event is a line of the log, an entry of the history and a count.
func TestKinds(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	r, m := recorder(t)
	tellAll(r.DB("words", logger.With("db", "words")))
	wantLog := `level=INFO msg="version found" db=words version=2
level=INFO msg="load finished" db=words version=2 files=4/4 records=1000
level=WARN msg="version held" db=words version=2 reason="half of the records are missing"
level=INFO msg="version approved" db=words version=2 reason="by ana: it is right"
level=INFO msg="version active" db=words version=2 after=1.235s instead_of=1
level=INFO msg="the pin of the database has changed" db=words pin="pinned to 1 (by ana)"
level=WARN msg="version rolled back to" db=words version=1 instead_of=2 reason="wrong prices"
level=ERROR msg="version failed" db=words version=3 state=ERROR error="part-r-00001:\n  damaged"
level=INFO msg="version removed" db=words version=2
`
	if diff := cmp.Diff(wantLog, log.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	wantHistory := []string{
		"removed 2 ", "failed 3 part-r-00001: damaged", "rolled_back 1 from 2: wrong prices", "pinned 1 pinned to 1 (by ana)",
		"active 2 instead of 1", "approved 2 by ana: it is right", "held 2 half of the records are missing", "loaded 2 1,000 records", "found 2 ",
	}
	var got []string
	ids := map[string]bool{}
	for _, e := range r.Last("words") {
		got, ids[e.ID] = append(got, fmt.Sprintf("%s %s %s", e.Kind, e.Version, e.Reason)), true
		if e.Node != "n1:9599" || e.DB != "words" || time.Since(e.Time).Abs() > time.Hour || e.Time.Location() != time.UTC {
			t.Errorf("event %+v", e)
		}
	}
	if diff := cmp.Diff(wantHistory, got); diff != "" || len(ids) != len(got) {
		t.Errorf("history with %d ids (-want +got):\n%s", len(ids), diff)
	}
	for _, kind := range status.EventKinds {
		want := fmt.Sprintf("sequins_events_total{db=\"words\",kind=%q} 1", kind)
		if text := exposed(t, m); !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func exposed(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// A switch to another content of the version that was served says so.
func TestChangedInPlace(t *testing.T) {
	r, _ := recorder(t)
	d := r.DB("db", quiet)
	d.Found("1", true)
	d.Active("1", "1", time.Second)
	d.Removed("1", true)
	for i, kind := range []status.EventKind{status.EventRemoved, status.EventActive, status.EventFound} {
		if e := r.Last("db")[i]; e.Kind != kind || e.Version != "1" || !strings.Contains(e.Reason, "files in the source") || strings.Contains(e.Reason, "instead of") {
			t.Errorf("%+v, want %s", e, kind)
		}
	}
}

// The history is bounded, and an eventful db does not displace the last events of the others.
func TestHistoryIsBounded(t *testing.T) {
	r, _ := recorder(t)
	rare, busy := r.DB("rare", quiet), r.DB("busy", quiet)
	for i := range 60 {
		rare.Found(fmt.Sprintf("r%d", i), false)
	}
	for i := range 1500 {
		busy.Found(fmt.Sprintf("b%d", i), false)
	}
	for name, test := range map[string]struct {
		got         []status.Event
		n           int
		first, last string
	}{
		"rare": {r.Last("rare"), 50, "r59", "r10"},
		"busy": {r.Last("busy"), 50, "b1499", "b1450"},
		"node": {r.Last(""), 50, "b1499", "b1450"},
	} {
		if n := len(test.got); n != test.n || test.got[0].Version != test.first || test.got[n-1].Version != test.last {
			t.Errorf("%s: %d events from %+v to %+v, want %d", name, n, test.got[0], test.got[n-1], test.n)
		}
	}
}

// A removed db has no counters, and a new one has them at 0.
func TestCountersOfDBs(t *testing.T) {
	r, m := recorder(t)
	r.DB("words", quiet)
	if text := exposed(t, m); !strings.Contains(text, `{db="words",kind="failed"} 0`) {
		t.Errorf("no counter at 0:\n%s", text)
	}
	m.Forget("words")
	if text := exposed(t, m); strings.Contains(text, `db="words"`) {
		t.Errorf("counters of a removed db:\n%s", text)
	}
}

// A reason is one line of valid UTF-8 and at most 1,000 bytes, whatever an error contains.
func TestLongReasons(t *testing.T) {
	r, _ := recorder(t)
	db := r.DB("words", quiet)
	for _, reason := range []string{strings.Repeat("x", 1<<20), strings.Repeat("é", 1000), strings.Repeat("\xff", 5000), strings.Repeat("\n", 1<<16), "a\r\nb"} {
		db.Failed("1", "ERROR", reason, "")
		e := r.Last("words")[0]
		if len(e.Reason) > 1000 || !utf8.ValidString(e.Reason) || strings.ContainsAny(e.Reason, "\r\n") {
			t.Errorf("%.10q: %d bytes: %q", reason, len(e.Reason), e.Reason)
		}
	}
}

// Without a recorder, events are logged.
func TestNilRecorder(t *testing.T) {
	var log bytes.Buffer
	var r *events.Recorder
	db := r.DB("words", slog.New(slog.NewTextHandler(&log, nil)))
	tellAll(db)
	if n := strings.Count(log.String(), "\n"); n != 9 || r.Last("") != nil || r.Last("words") != nil {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}
