package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sequins/internal/sleep"
	"sequins/source/objects"
)

const (
	// firstPause and maxPause are the maximum pauses after the first failure and after later ones.
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second
)

// client sends requests to the JSON API.
type client struct {
	http       *objects.Client
	endpoint   string  // scheme and host
	tokens     *tokens // nil for requests without credentials
	maxRetries int
}

// A request makes an HTTP request anew for each attempt.
type request func(ctx context.Context) (*http.Request, error)

// do sends a request until it succeeds or fails permanently. The statuses of success are those below 300 and others.
func (c *client) do(ctx context.Context, make request, others ...int) (*http.Response, error) {
	refreshed := false
	for failed := 0; ; {
		resp, err := c.once(ctx, make, &refreshed, others)
		if err == nil {
			return resp, nil
		}
		if failed++; failed > c.maxRetries || ctx.Err() != nil || !temporary(err) {
			return nil, err
		}
		if err := c.pause(ctx, failed, err); err != nil {
			return nil, err
		}
	}
}

// pause waits before a request is repeated.
func (c *client) pause(ctx context.Context, failed int, err error) error {
	pause := sleep.Backoff(failed, firstPause, maxPause)
	var answer *answerError
	if errors.As(err, &answer) {
		pause = max(pause, min(answer.retryAfter, maxPause))
	}
	return sleep.For(ctx, pause)
}

// once sends a request, and sends it again if it is refused and there is a new token.
func (c *client) once(ctx context.Context, make request, refreshed *bool, others []int) (*http.Response, error) {
	for {
		req, err := make(ctx)
		if err != nil {
			return nil, permanent{err}
		}
		token := ""
		if c.tokens != nil {
			if token, err = c.tokens.get(ctx); err != nil {
				return nil, err
			}
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || slices.Contains(others, resp.StatusCode) {
			return resp, nil
		}
		err = readError(resp)
		if resp.StatusCode != http.StatusUnauthorized || c.tokens == nil || *refreshed {
			return nil, err
		}
		c.tokens.refused(token)
		*refreshed = true
	}
}

// permanent is an error that another attempt would meet again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// temporary reports whether another attempt may succeed. Errors without an answer are those of connections.
func temporary(err error) bool {
	var answer *answerError
	if errors.As(err, &answer) {
		switch answer.status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var p permanent
	return !errors.As(err, &p)
}

// retryAfter returns the pause that an answer asks for.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// closeBody reads what is left of a short answer, so that its connection can be used again.
func closeBody(resp *http.Response) error {
	_, err := io.CopyN(io.Discard, resp.Body, 64<<10)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, resp.Body.Close())
}

// newRequest returns a request; its target begins with a slash and is escaped.
func (c *client) newRequest(ctx context.Context, method, target string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.endpoint+target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target, err)
	}
	return req, nil
}
