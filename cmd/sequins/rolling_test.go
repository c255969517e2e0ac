package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// pool is what a client knows of the nodes that it may ask: those whose /readyz is 200.
type pool struct {
	client *http.Client
	ready  []atomic.Bool
	bases  []string
}

// follow asks every node for /readyz until stop is closed.
func (p *pool) follow(stop <-chan struct{}) {
	for i := 0; ; i = (i + 1) % len(p.bases) {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		resp, err := p.client.Get(p.bases[i] + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		p.ready[i].Store(err == nil && resp.StatusCode == http.StatusOK)
	}
}

// get asks one of the ready nodes for a key.
func (p *pool) get() error {
	i := rand.IntN(len(p.bases))
	for range p.bases {
		if p.ready[i].Load() {
			break
		}
		i = (i + 1) % len(p.bases)
	}
	resp, err := p.client.Get(p.bases[i] + demoPath)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "red wool scarf")) {
		err = fmt.Errorf("%s: %.100s", resp.Status, body)
	}
	return err
}

// A client that follows /readyz sees no failed request while one node after the other is restarted.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := demoSource(t, dir)
	start := func(i int, bind string) *served {
		store := filepath.Join(dir, fmt.Sprint("store", i))
		conf := filepath.Join(dir, fmt.Sprint(i, ".conf"))
		writeFile(t, conf, fmt.Sprintf("source = %q\nlocal_store = %q\nshutdown_delay = \"1s\"\n", source, store))
		return startServer(t, dir, "--config", conf, "--bind", bind)
	}
	p := &pool{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}, ready: make([]atomic.Bool, 3)}
	defer p.client.CloseIdleConnections()
	var nodes []*served
	for i := range p.ready {
		n := start(i, "127.0.0.1:0")
		n.awaitVersion(demoPath, demoFirst)
		nodes, p.bases = append(nodes, n), append(p.bases, n.base)
		p.ready[i].Store(true)
	}

	stop := make(chan struct{})
	var running sync.WaitGroup
	var asked atomic.Int64
	running.Go(func() { p.follow(stop) })
	for range 4 {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if err := p.get(); err != nil {
					t.Errorf("a request failed: %v", err)
				}
				asked.Add(1)
			}
		})
	}
	for i, n := range nodes {
		before := asked.Load()
		n.stop(syscall.SIGTERM)
		nodes[i] = start(i, strings.TrimPrefix(n.base, "http://"))
		nodes[i].await("/readyz", "200", func(r *http.Response, _ string) bool { return r.StatusCode == http.StatusOK })
		if asked.Load() == before {
			t.Error("nothing was asked meanwhile")
		}
	}
	close(stop)
	running.Wait()
	t.Logf("%d requests", asked.Load())
}

// A second signal ends a node at once that serves on after the first.
func TestSecondSignalDuringTheDelay(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "sequins.conf"), fmt.Sprintf("source = %q\nlocal_store = %q\nshutdown_delay = \"1h\"\n", demoSource(t, dir), filepath.Join(dir, "store")))
	s := startServer(t, dir)
	s.awaitVersion(demoPath, demoFirst)
	s.await("/readyz", "200", func(r *http.Response, _ string) bool { return r.StatusCode == http.StatusOK }) // or the next wait would be for nothing
	s.signal(syscall.SIGTERM)
	s.await("/readyz", "503", func(r *http.Response, _ string) bool { return r.StatusCode == http.StatusServiceUnavailable })
	if resp, _ := s.get(demoPath); resp.StatusCode != http.StatusOK {
		t.Errorf("during the delay: %s", resp.Status)
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
}
