package events

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"sequins/internal/sleep"
	"sequins/internal/wire"
	"sequins/observe/status"
)

const (
	// maxQueue limits the events that wait to be sent. A node that starts finds all versions of its databases at once.
	maxQueue = 4096
	// attemptTimeout limits one request.
	attemptTimeout = 10 * time.Second
	// minPause and maxPause limit the pause after failed requests.
	minPause = time.Second
	maxPause = time.Minute
	// maxAge is the age after which an event is not retried.
	maxAge = time.Hour
	// closeTimeout limits how long Recorder.Close waits.
	closeTimeout = 2 * time.Second
	// maxAnswer limits what is read of an answer, in bytes, so that its connection can be used again.
	maxAnswer = 4 << 10
)

// Reasons to drop events.
var (
	errFull     = errors.New("the queue is full")
	errNoTarget = errors.New("the webhook was removed from the configuration")
	errRefused  = errors.New("it refuses this event") // rather than all events at this time
)

// webhook sends events to a URL, one after another.
type webhook struct {
	o      Options // with the first target
	client *http.Client

	ctx      context.Context // of requests
	cancel   context.CancelFunc
	target   atomic.Pointer[Target] // nil: nothing is sent
	queue    chan status.Event      // closed by Recorder.Close
	closing  chan struct{}          // closed with it
	ended    chan struct{}          // closed when run has ended
	dropping atomic.Bool            // an event was dropped since the last success, which was logged
	failures int                    // consecutive failed requests; belongs to run
}

// startWebhook starts the goroutine of a webhook.
func startWebhook(o Options) *webhook {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.MaxConnsPerHost = 1
	w := &webhook{
		o: o, client: &http.Client{Transport: transport, Timeout: attemptTimeout, CheckRedirect: wire.NoRedirects},
		queue: make(chan status.Event, maxQueue), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	w.target.Store(o.Target)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.run()
	return w
}

// send adds an event to the queue, unless that is full. It does not wait.
func (w *webhook) send(e status.Event) {
	if w.target.Load() == nil {
		return
	}
	select {
	case w.queue <- e:
	default:
		w.drop(errFull)
	}
}

// drop counts an event that is not sent, and logs the first since the last success.
func (w *webhook) drop(reason error) {
	w.o.Metrics.Dropped.Add(1)
	if !w.dropping.Swap(true) {
		w.o.Logger.Warn("events are dropped that the webhook has not received", "error", reason)
	}
}

// run sends the events in the queue until Recorder.Close. Then there is one more attempt for each of them.
func (w *webhook) run() {
	defer close(w.ended)
	for e := range w.queue {
		if err := w.deliver(e); err != nil {
			w.drop(fmt.Errorf("event %s (%s %s of %s): %w", e.ID, e.Kind, e.Version, e.DB, err))
		}
	}
}

// deliver sends an event, and repeats that until the receiver has accepted or refused it, it is too old, or Recorder.Close was called. The error is why
// it is dropped. A new target is used from the next request on.
func (w *webhook) deliver(e status.Event) error {
	for {
		target := w.target.Load()
		if target == nil {
			return errNoTarget
		}
		err := w.post(*target, e)
		switch {
		case err == nil:
			if w.failures > 0 {
				w.o.Logger.Info("the webhook answers again")
			}
			w.failures = 0
			w.dropping.Store(false)
			return nil
		case errors.Is(err, errRefused):
			return err
		}
		if w.failures++; w.failures == 1 {
			w.o.Logger.Warn("the webhook does not accept events; they are sent later", "error", err)
		}
		select {
		case <-w.closing:
			return err
		case <-time.After(sleep.Backoff(w.failures, minPause, maxPause)):
		}
		if time.Since(e.Time) > maxAge {
			return err
		}
	}
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
	req.Header.Set("User-Agent", "sequins/"+w.o.Build)
	if t.Secret != "" {
		req.Header.Set(SignatureHeader, Sign(t.Secret, time.Now(), body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()                                          //nolint:errcheck // it was only read
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // the status counts
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w with status %d", errRefused, resp.StatusCode)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	return nil
}

// withoutURL returns an error without the URL of the request, which may contain a password.
func withoutURL(err error) error {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		return wrapped.Err
	}
	return err
}

// Target is where events are sent.
type Target struct {
	// URL is an http or https URL. It may contain a password or a token, and is not logged.
	URL string
	// Secret signs the requests, see Sign. Without one they have no signature.
	Secret string
}

// SignatureHeader is the header of a request that has its signature.
const SignatureHeader = "X-Sequins-Signature"

// Sign returns the signature of a body that is sent at a time: t=<Unix time in seconds>,v1=<hex>. The second part is
// the HMAC-SHA256, with the secret as key, of the time as in the first part, a dot and the body. A receiver that
// checks the time refuses requests that somebody has recorded and sends again.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
