package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/test/expect"
)

const secret = "the-secret-of-the-webhook"

// A receiver answers the requests of a webhook without a network, so that time can be simulated.
type receiver struct {
	answer func(n int, req *http.Request) (*http.Response, error) // n counts from 1; nil: 204

	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
	times    []time.Duration // since began
	began    time.Time
}

// RoundTrip implements http.RoundTripper.
func (f *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.requests, f.bodies, f.times = append(f.requests, req), append(f.bodies, body), append(f.times, time.Since(f.began))
	n := len(f.requests)
	f.mu.Unlock()
	if f.answer == nil {
		return answerOf(http.StatusNoContent), nil
	}
	return f.answer(n, req)
}

func answerOf(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("text"))}
}

// versions returns the versions of the requests so far.
func (f *receiver) versions(t *testing.T) (versions []string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, body := range f.bodies {
		var e status.Event
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		versions = append(versions, e.Version)
	}
	return versions
}

// sender is a recorder whose webhook reaches a receiver.
type sender struct {
	*Recorder
	db      *DB
	metrics *metrics.Metrics
	log     *bytes.Buffer // to be read after Close
}

func newSender(f *receiver) sender {
	m, log := metrics.New(), new(bytes.Buffer)
	r := New(Options{
		Node: "n1:9599", Build: "v1", Metrics: m.Events, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Target: &Target{URL: "https://user:password@hooks.example.com/token-in-path?key=token", Secret: secret},
	})
	f.began = time.Now()
	r.webhook.client.Transport = f
	return sender{r, r.DB("words", slog.New(slog.DiscardHandler)), m, log}
}

// wantDropped checks how many events were given up.
func (s sender) wantDropped(t *testing.T, n int) {
	t.Helper()
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if want := fmt.Sprintf("\nsequins_webhook_events_dropped_total %d\n", n); !strings.Contains(w.Body.String(), want) {
		t.Errorf("no %q in\n%s", want, w.Body)
	}
}

// end closes the sender, which must take at most so long, and checks that the log has no part of the URL.
func (s sender) end(t *testing.T, most time.Duration) {
	t.Helper()
	began := time.Now()
	if err := s.Close(); err != nil || time.Since(began) > most {
		t.Errorf("closed after %v: %v", time.Since(began), err)
	}
	for _, part := range []string{"password", "token", secret} {
		if strings.Contains(s.log.String(), part) {
			t.Errorf("the log has a secret:\n%s", s.log)
		}
	}
}

// Events are sent in order, with all fields, and signed.
func TestSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f receiver
		s := newSender(&f)
		s.db.Active("2", "1", time.Second)
		s.db.Removed("1", false)
		synctest.Wait()
		if diff := cmp.Diff([]string{"2", "1"}, f.versions(t)); diff != "" {
			t.Error(diff)
		}
		var got map[string]any
		expect.NoError(t, json.Unmarshal(f.bodies[0], &got))
		want := map[string]any{
			"id": s.boot + "-1", "time": f.began.UTC().Format(time.RFC3339Nano), "node": "n1:9599", "db": "words", "version": "2",
			"kind": "active", "reason": "instead of 1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
		req := f.requests[0]
		if h := req.Header; req.Method != http.MethodPost || h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "sequins/v1" ||
			h.Get(SignatureHeader) != Sign(secret, f.began, f.bodies[0]) {
			t.Errorf("%s %v", req.Method, req.Header)
		}
		s.wantDropped(t, 0)
		s.end(t, 0)
	})
}

// The signature is the one of the documentation, computed by openssl.
func TestSign(t *testing.T) {
	got := Sign("key-of-16-letters", time.Unix(1769817600, 999), []byte(`{"id":"1"}`))
	// printf '1769817600.{"id":"1"}' | openssl dgst -sha256 -hmac key-of-16-letters
	const want = "t=1769817600,v1=18ea5d27fd6f6554415b785b7ddd132b63d9aaabdad90a807c7e2dd4c781a0c1"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A receiver that is down gets each event later, in order, after pauses that grow.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := receiver{answer: func(n int, _ *http.Request) (*http.Response, error) {
			switch {
			case n <= 4:
				return nil, errors.New("connection refused")
			case n <= 8:
				return answerOf(http.StatusInternalServerError), nil
			}
			return answerOf(http.StatusOK), nil
		}}
		s := newSender(&f)
		s.db.Found("1", false)
		s.db.Found("2", false)
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(append(strings.Split(strings.Repeat("1", 9), ""), "2"), f.versions(t)); diff != "" {
			t.Error(diff)
		}
		for i, seconds := range []float64{1, 2, 4, 8, 16, 32, 60, 60} {
			if pause := (f.times[i+1] - f.times[i]).Seconds(); pause < seconds/2 || pause >= seconds {
				t.Errorf("pause %d is %v s, want %v to %v", i, pause, seconds/2, seconds)
			}
		}
		if f.requests[0].Header.Get(SignatureHeader) == f.requests[8].Header.Get(SignatureHeader) {
			t.Error("a later request has the time of the first")
		}
		s.wantDropped(t, 0)
		s.end(t, 0)
		if log := s.log.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "connection refused") || !strings.Contains(log, "the webhook answers again") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// An endpoint that hangs costs those who record events nothing. The queue is bounded, events beyond it are dropped,
// and the end waits two seconds.
func TestHangingReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := receiver{answer: func(_ int, req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}}
		s := newSender(&f)
		s.db.Found("first", false)
		synctest.Wait()
		began := time.Now()
		for i := range maxQueue + 10 {
			s.db.Found(fmt.Sprint(i), false)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("recording took %v", took)
		}
		s.wantDropped(t, 10)
		time.Sleep(attemptTimeout + maxPause)
		if got := f.versions(t); len(got) < 2 || got[0] != "first" || got[1] != "first" {
			t.Errorf("requests of %q", got)
		}
		s.end(t, closeTimeout)
		if !strings.Contains(s.log.String(), "events are dropped that the webhook has not received") {
			t.Errorf("log:\n%s", s.log)
		}
	})
}

// What waits is sent at the end, if the receiver answers.
func TestCloseSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := receiver{answer: func(int, *http.Request) (*http.Response, error) {
			time.Sleep(100 * time.Millisecond)
			return answerOf(http.StatusOK), nil
		}}
		s := newSender(&f)
		for i := range 10 {
			s.db.Found(fmt.Sprint(i), false)
		}
		s.end(t, time.Second)
		if n := len(f.versions(t)); n != 10 {
			t.Errorf("%d events were sent", n)
		}
		s.wantDropped(t, 0)
	})
}

// After a failed request, the end waits for no pause.
func TestCloseDuringPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := receiver{answer: func(int, *http.Request) (*http.Response, error) { return answerOf(http.StatusBadGateway), nil }}
		s := newSender(&f)
		s.db.Found("1", false)
		time.Sleep(5 * time.Minute)
		s.end(t, 0)
		s.wantDropped(t, 1)
	})
}

// A receiver that refuses one event gets the next at once; one that refuses all for a time gets it again after a pause.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := receiver{answer: func(n int, _ *http.Request) (*http.Response, error) {
			a := answerOf(map[int]int{1: 400, 2: 413, 3: 422, 4: 429, 5: 503, 6: 302}[n])
			a.Header.Set("Location", "https://other.example.com/")
			if a.StatusCode == 0 {
				a.StatusCode = 200
			}
			return a, nil
		}}
		s := newSender(&f)
		for i := range 4 {
			s.db.Found(fmt.Sprint(i), false)
		}
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"0", "1", "2", "3", "3", "3", "3"}, f.versions(t)); diff != "" {
			t.Error(diff)
		}
		for i, most := range []time.Duration{0, 0, 0, minPause, 2 * minPause, 4 * minPause} {
			if pause := f.times[i+1] - f.times[i]; pause < most/2 || pause > most {
				t.Errorf("pause %d is %v, want %v at most", i, pause, most)
			}
		}
		s.wantDropped(t, 3)
		s.end(t, 0)
	})
}

// An event that is too old gets one request, and does not keep newer ones from being sent.
func TestOldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up bool
		var mu sync.Mutex
		f := receiver{answer: func(int, *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if up {
				return answerOf(200), nil
			}
			return answerOf(500), nil
		}}
		s := newSender(&f)
		s.db.Found("1", false)
		time.Sleep(maxAge - 10*time.Minute)
		s.db.Found("2", false)
		time.Sleep(30 * time.Minute)
		mu.Lock()
		up = true
		mu.Unlock()
		time.Sleep(10 * time.Minute)
		n := len(f.versions(t))
		if got := f.versions(t); got[0] != "1" || got[n-1] != "2" || n > 300 {
			t.Errorf("%d requests, the last of %s", n, got[n-1])
		}
		s.wantDropped(t, 1)
		s.end(t, 0)
	})
}

// A new target is used after the pause; without one, nothing is sent and nothing kept.
func TestSetTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := receiver{answer: func(_ int, req *http.Request) (*http.Response, error) {
			if req.URL.Host == "new.example.com" {
				return answerOf(200), nil
			}
			return answerOf(500), nil
		}}
		s := newSender(&f)
		s.db.Found("1", false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		tried := len(f.times)
		s.SetTarget(&Target{URL: "https://new.example.com", Secret: "another-secret-of-16"})
		time.Sleep(maxPause)
		synctest.Wait()
		s.wantDropped(t, 0)
		if got := f.requests[tried].Header.Get(SignatureHeader); got != Sign("another-secret-of-16", f.began.Add(f.times[tried]), f.bodies[tried]) {
			t.Errorf("signature %s", got)
		}

		s.SetTarget(&Target{URL: "https://old.example.com", Secret: secret})
		s.db.Found("2", false)
		synctest.Wait()
		s.SetTarget(nil)
		s.db.Found("3", false)
		time.Sleep(10 * time.Minute)
		s.wantDropped(t, 1)
		if len(s.Last("")) != 3 {
			t.Errorf("history %v", s.Last(""))
		}
		s.end(t, 0)
	})
}

// The target changes during a request, which the old one then refuses: the new one gets the event.
func TestTargetChangesDuringRequest(t *testing.T) {
	arrived, answer, got := make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 10)
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer old.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }))
	defer other.Close()
	r := New(Options{Node: "n", Target: &Target{URL: old.URL}})
	defer r.Close()
	r.DB("db", slog.New(slog.DiscardHandler)).Found("1", false)
	<-arrived
	r.SetTarget(&Target{URL: other.URL})
	close(answer)
	select {
	case <-got:
	case <-time.After(time.Minute):
		t.Error("nothing is sent to the new target")
	}
}
