package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"sequins/internal/sleep"
	"sequins/observe/metrics"
	"sequins/observe/status"
)

const (
	// maxQueue limits the events that wait to be sent. A node that starts finds all versions of its databases at once.
	maxQueue = 4096
	// attemptTimeout limits one request.
	attemptTimeout = 10 * time.Second
	// minPause and maxPause limit the pause after failed requests, maxRetryAfter what the receiver may ask for.
	minPause      = time.Second
	maxPause      = time.Minute
	maxRetryAfter = 5 * time.Minute
	// maxAge is the age after which an event is not retried.
	maxAge = time.Hour
	// closeTimeout limits how long close waits.
	closeTimeout = 2 * time.Second
	// maxAnswer limits what is read of an answer, in bytes, so that its connection can be used again.
	maxAnswer = 4 << 10
)

// Reasons to drop events that are not answers of the receiver.
var (
	errFull     = errors.New("the queue is full")
	errNoTarget = errors.New("the webhook was removed from the configuration")
)

// webhook sends events to a URL, one after another.
type webhook struct {
	client    *http.Client
	userAgent string
	log       *slog.Logger
	metrics   metrics.Events

	ctx    context.Context // of requests
	cancel context.CancelFunc
	ended  chan struct{} // closed when run has ended
	wake   chan struct{} // an event or a target was set, or closing has begun

	mu       sync.Mutex
	target   *Target // nil: nothing is sent
	queue    []status.Event
	closing  chan struct{} // closed by close
	dropping bool          // an event was dropped since the last success, which was logged

	// The following fields belong to run.
	failures     int       // consecutive failed requests
	failingSince time.Time // of the first of them
}

// startWebhook starts the goroutine of a webhook.
func startWebhook(o Options) *webhook {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.MaxConnsPerHost = 1
	w := &webhook{
		client: &http.Client{
			Transport: transport, Timeout: attemptTimeout,
			// A redirect would make a GET of the request, or send it where nobody has configured it.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		userAgent: "sequins/" + o.Build, log: o.Logger, metrics: o.Metrics, target: o.Target,
		ended: make(chan struct{}), wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.run()
	return w
}

// send adds an event to the queue. It does not wait.
func (w *webhook) send(e status.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target == nil {
		return
	}
	if len(w.queue) == maxQueue {
		w.queue = w.queue[1:]
		w.dropped(1, errFull)
	}
	w.queue = append(w.queue, e)
	w.metrics.Queue(len(w.queue))
	w.notify()
}

// dropped counts events that are not sent, and logs the first since the last success. The caller holds mu.
func (w *webhook) dropped(n int, reason error) {
	w.metrics.Dropped(n)
	if !w.dropping {
		w.dropping = true
		w.log.Warn("events are dropped that the webhook has not received", "error", reason)
	}
}

// notify wakes run.
func (w *webhook) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *webhook) setTarget(t *Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t == nil && len(w.queue) > 0 {
		w.dropped(len(w.queue), errNoTarget)
		w.queue = nil
		w.metrics.Queue(0)
	}
	w.target = t
	w.notify() // the new one may answer
}

// close ends run, after an attempt for each event in the queue if there is time.
func (w *webhook) close() {
	close(w.closing)
	timeout := time.AfterFunc(closeTimeout, w.cancel)
	defer timeout.Stop()
	<-w.ended
	w.cancel()
	w.client.CloseIdleConnections()
}

// isClosing reports whether close was called.
func (w *webhook) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// run sends events until close.
func (w *webhook) run() {
	defer close(w.ended)
	for {
		e, target, ok := w.next()
		if !ok {
			return
		}
		err := w.post(*target, e)
		w.metrics.Sent(err == nil)
		var refused *refusal
		switch {
		case err == nil:
			w.succeeded()
			continue
		case errors.As(err, &refused) && refused.final():
			w.drop(e, err)
			continue
		}
		w.failed(e, err)
		if w.isClosing() {
			w.giveUp()
			return
		}
		w.pause(err, target)
	}
}

// next takes the oldest event from the queue, and waits for one if it is empty. It returns false at the end.
func (w *webhook) next() (e status.Event, target *Target, ok bool) {
	for {
		w.mu.Lock()
		if len(w.queue) > 0 && w.target != nil {
			e, target = w.queue[0], w.target
			w.queue = w.queue[1:]
			w.metrics.Queue(len(w.queue))
			w.mu.Unlock()
			return e, target, true
		}
		w.mu.Unlock()
		select {
		case <-w.wake:
		case <-w.closing:
			return e, target, false
		}
	}
}

// failed keeps an event for another request, unless it is too old, and logs the first of a series of failures.
func (w *webhook) failed(e status.Event, err error) {
	if w.failures++; w.failures == 1 {
		w.failingSince = time.Now()
		w.log.Warn("the webhook does not accept events; they are sent later", "error", err)
	}
	if time.Since(e.Time) > maxAge {
		w.drop(e, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.target == nil:
		w.dropped(1, errNoTarget)
	case len(w.queue) == maxQueue: // e is older than all of them
		w.dropped(1, errFull)
	default:
		w.queue = append([]status.Event{e}, w.queue...)
		w.metrics.Queue(len(w.queue))
	}
}

// drop gives an event up after a request that failed.
func (w *webhook) drop(e status.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped(1, fmt.Errorf("event %s (%s %s of %s): %w", e.ID, e.Kind, e.Version, e.DB, err))
}

// giveUp drops the events in the queue at the end.
func (w *webhook) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.queue); n > 0 {
		w.metrics.Dropped(n)
		w.log.Warn("events are dropped at the shutdown that the webhook has not received", "events", n)
	}
}

// succeeded ends a series of failures.
func (w *webhook) succeeded() {
	if w.failures > 0 {
		w.log.Info("the webhook answers again", "after", time.Since(w.failingSince).Round(time.Millisecond))
	}
	w.failures = 0
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropping = false
}

// pause waits after a failed request to a target. Another one ends it, also if it was set during the request.
func (w *webhook) pause(err error, used *Target) {
	wait := sleep.Backoff(w.failures, minPause, maxPause)
	var refused *refusal
	if errors.As(err, &refused) {
		wait = max(wait, min(refused.retryAfter, maxRetryAfter))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for w.currentTarget() == used {
		select {
		case <-timer.C:
			return
		case <-w.closing:
			return
		case <-w.wake:
		}
	}
}

func (w *webhook) currentTarget() *Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target
}

// post sends one event.
func (w *webhook) post(t Target, e status.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", w.userAgent)
	if t.Secret != "" {
		req.Header.Set(SignatureHeader, Sign(t.Secret, time.Now(), body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()                                          //nolint:errcheck // it was only read
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // the status counts
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return newRefusal(resp)
}

// withoutURL returns an error without the URL of the request, which may contain a password.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// refusal is an answer with another status than 2xx.
type refusal struct {
	status     int
	retryAfter time.Duration
}

func newRefusal(resp *http.Response) *refusal {
	r := &refusal{status: resp.StatusCode}
	if s, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		r.retryAfter = time.Duration(s) * time.Second
	}
	return r
}

// final reports whether the receiver refuses this event, rather than all events at this time.
func (r *refusal) final() bool {
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// Error implements error.
func (r *refusal) Error() string { return fmt.Sprintf("it answers with status %d", r.status) }
