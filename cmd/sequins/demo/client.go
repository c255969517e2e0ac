package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// client is a client that requests products and fails at the first wrong answer.
type client struct {
	base    string
	http    *http.Client
	keys    []string // present in both versions
	answers map[string]int
}

func newClient(base string) *client {
	second := catalogue(Second)
	c := &client{base: base, http: &http.Client{Transport: &http.Transport{}}, answers: map[string]int{}}
	for key := range catalogue(First) {
		if _, ok := second[key]; ok {
			c.keys = append(c.keys, key)
		}
	}
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// patience is how long a version of the demo may take until it is served.
const patience = time.Minute

// wait waits until a version is served.
func (c *client) wait(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the demo is not being served after "+patience.String()))
	defer cancel()
	for {
		if _, served, err := c.get(ctx, c.keys[0]); err == nil && served == version {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// watch requests random keys until the second version has answered a second's worth of requests. It
// returns an error for the first wrong answer.
func (c *client) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("there was no upgrade after "+patience.String()))
	defer cancel()
	last, upgraded := First, time.Time{}
	for upgraded.IsZero() || time.Since(upgraded) < time.Second {
		key := c.keys[rand.IntN(len(c.keys))]
		p, served, err := c.get(ctx, key)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case served < last:
			return fmt.Errorf("%s was answered from %s after something was answered from %s", key, served, last)
		case p.AsOf != served:
			return fmt.Errorf("%s was answered from %s with a value of %s", key, served, p.AsOf)
		}
		if served != last {
			upgraded = time.Now()
		}
		last = served
		c.answers[served]++
	}
	return nil
}

// get requests a product, and returns it with the version of the answer.
func (c *client) get(ctx context.Context, key string) (p product, version string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/"+DB+"/"+key, nil)
	if err != nil {
		return p, "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return p, "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return p, "", err
	}
	if resp.StatusCode != http.StatusOK {
		return p, "", fmt.Errorf("%s was answered with %s: %s", req.URL, resp.Status, body)
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, "", fmt.Errorf("%s was answered with what is no product: %w", req.URL, err)
	}
	return p, resp.Header.Get("X-Sequins-Version"), nil
}
