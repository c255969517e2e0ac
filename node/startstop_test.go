package node

import (
	"context"
	"net/http"
	"testing"
	"time"

	"sequins/test/expect"
)

// joining is a cluster that a node joins when it is let. Meanwhile it asks the node.
type joining struct {
	*testCluster
	ask func()
	let chan struct{}
}

func (j joining) Join(ctx context.Context, _ func([]string) error) error {
	j.ask()
	select {
	case <-j.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A node that starts answers from its first moment, however long it takes to join.
func TestStartAnswersAtOnce(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	cluster := joining{testCluster: newCluster(), let: make(chan struct{})}
	r := f.run(func(o *Options) {
		url := "http://" + o.Listener.Addr().String() + "/livez"
		cluster.ask = func() {
			client := &http.Client{Timeout: time.Second / 2, Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get(url)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("/livez at the beginning: %v, %v", resp, err)
				return
			}
			resp.Body.Close()
		}
		o.Cluster = cluster
	})
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/fruit/fig": 503, "/none/fig": 503, "/": 200} {
		resp, err := r.client.Get(r.url + path)
		expect.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != want || path == "/fruit/fig" && resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %s, %v", path, resp.Status, resp.Header)
		}
	}
	close(cluster.let)
	r.serves("fruit", "1")
}

// After the end of its context a node fails /readyz and serves on for the delay.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	const delay = 2 * time.Second
	r := f.run(func(o *Options) { o.ShutdownDelay = delay })
	r.serves("fruit", "1")
	began := time.Now()
	r.cancel()
	r.eventually("it is not ready any more", func() bool {
		a, err := r.try("/readyz")
		return err == nil && a.status == http.StatusServiceUnavailable
	})
	served := 0
	for {
		resp, err := r.client.Get(r.url + "/fruit/fig")
		if err != nil {
			break
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !resp.Close {
			t.Errorf("%s, connection closed: %v", resp.Status, resp.Close)
		}
		served++
		time.Sleep(time.Millisecond)
	}
	if d := time.Since(began); d < delay || served == 0 {
		t.Errorf("%d requests were served for %v", served, d)
	}
}
