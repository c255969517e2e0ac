package main

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

// demoWatch is a client that requests products and fails at the first wrong answer.
type demoWatch struct {
	base    string
	client  *http.Client
	keys    []string // present in both versions
	answers map[string]int
}

func newDemoWatch(base string) *demoWatch {
	keys, _ := demoCatalogue(demoFirst)
	_, second := demoCatalogue(demoSecond)
	w := &demoWatch{base: base, client: &http.Client{Transport: &http.Transport{}}, answers: map[string]int{}}
	for _, key := range keys {
		if _, ok := second[key]; ok {
			w.keys = append(w.keys, key)
		}
	}
	return w
}

func (w *demoWatch) close() { w.client.CloseIdleConnections() }

// demoPatience is how long a version of the demo may take until it is served.
const demoPatience = time.Minute

// wait waits until a version is served.
func (w *demoWatch) wait(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, errors.New("the demo is not being served after "+demoPatience.String()))
	defer cancel()
	for {
		if _, served, err := w.get(ctx, w.keys[0]); err == nil && served == version {
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
func (w *demoWatch) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, errors.New("there was no upgrade after "+demoPatience.String()))
	defer cancel()
	last, upgraded := demoFirst, time.Time{}
	for upgraded.IsZero() || time.Since(upgraded) < time.Second {
		key := w.keys[rand.IntN(len(w.keys))]
		product, served, err := w.get(ctx, key)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case served < last:
			return fmt.Errorf("%s was answered from %s after something was answered from %s", key, served, last)
		case product.AsOf != served:
			return fmt.Errorf("%s was answered from %s with a value of %s", key, served, product.AsOf)
		}
		if served != last {
			upgraded = time.Now()
		}
		last = served
		w.answers[served]++
	}
	return nil
}

// get requests a product, and returns it with the version of the answer.
func (w *demoWatch) get(ctx context.Context, key string) (p demoProduct, version string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/"+demoDB+"/"+key, nil)
	if err != nil {
		return p, "", err
	}
	resp, err := w.client.Do(req)
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
