//go:build integration

package single

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestUpgradesUnderLoad moves through five versions while three readers ask without pause: no
// request fails, no reader sees an older version after a newer one, values belong to the version
// that the header names, and old versions are gone from disk afterwards.
func TestUpgradesUnderLoad(t *testing.T) {
	t.Parallel()
	const keys = 5000
	source, c := newNode(t)
	c.Extra = `refresh_period = "1h"` // SIGHUP alone
	writeVersion(t, source, "db", "v00", 4, keys, numbered("v00"))
	n := process.Serve(t, c, "db", "v00")

	var stop atomic.Bool
	var readers sync.WaitGroup
	var reads atomic.Int64
	for r := range 3 {
		readers.Go(func() {
			if err := read(n, r, keys, &stop, &reads); err != nil {
				t.Error(err)
			}
		})
	}
	for v := 1; v <= 5; v++ {
		version := fmt.Sprintf("v%02d", v)
		writeVersion(t, source, "db", version, 4, keys, numbered(version))
		before := reads.Load()
		n.Signal(t, syscall.SIGHUP)
		n.WaitCurrent(t, "db", version)
		n.WaitFor(t, "the readers go on", func() bool { return reads.Load() > before+1000 || t.Failed() })
	}
	stop.Store(true)
	readers.Wait()
	t.Logf("%d reads through 5 upgrades", reads.Load())

	n.WaitFor(t, "only v05 is left on disk", func() bool {
		for _, f := range storeFiles(t, c.Store) {
			if !strings.HasPrefix(f, "db/v05/") && f != "db/STATE.json" {
				return false
			}
		}
		return len(n.Health(t)["db"]) == 1
	})
}

// read asks for keys until stop, and checks each answer against those before it.
func read(n *process.Node, reader, keys int, stop *atomic.Bool, reads *atomic.Int64) error {
	c := n.Client()
	defer c.Close()
	last := ""
	for i := reader; !stop.Load(); i += 7 {
		key := fmt.Sprintf("key-%06d", i%keys)
		r, err := c.Get("/db/" + key)
		if err != nil {
			return fmt.Errorf("reader %d: %s: %w", reader, key, err)
		}
		v := r.Version()
		if r.Code != 200 || string(r.Body) != fmt.Sprintf("%s/%d", v, i%keys) {
			return fmt.Errorf("reader %d: %s: %d of version %q: %.100q", reader, key, r.Code, v, r.Body)
		}
		if v < last {
			return fmt.Errorf("reader %d: version %s after %s", reader, v, last)
		}
		last = v
		reads.Add(1)
	}
	return nil
}

// TestRefreshByPeriod sees a new version, a new db and a removed db without a signal.
func TestRefreshByPeriod(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\n" + `db_remove_timeout = "1ms"`
	writeVersion(t, source, "a", "1", 1, 10, numbered("1"))
	n := process.Serve(t, c, "a", "1")
	n.Expect(t, "/b/key-000001", 404, "", "")
	writeVersion(t, source, "b", "1", 2, 10, numbered("b1"))
	n.WaitCurrent(t, "b", "1")
	n.Expect(t, "/b/key-000001", 200, "1", "b1/1")
	writeVersion(t, source, "a", "2", 1, 10, numbered("2"))
	n.WaitCurrent(t, "a", "2")
	expect.NoError(t, os.RemoveAll(source+"/b"))
	n.WaitFor(t, "b is gone", func() bool { _, there := n.Health(t)["b"]; return !there })
	n.Expect(t, "/b/key-000001", 404, "", "")
	n.WaitFor(t, "b's files are gone", func() bool {
		return !slices.ContainsFunc(storeFiles(t, c.Store), func(f string) bool { return strings.HasPrefix(f, "b/") })
	})
	n.Expect(t, "/a/key-000001", 200, "2", "2/1")
}

// TestSupersededLoadIsCancelled throttles a load, so that it would take hours, and publishes a
// newer version.
func TestSupersededLoadIsCancelled(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\n" + `throttle_loads = "5ms"`
	writeVersion(t, source, "db", "1", 1, 10, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	writeVersion(t, source, "db", "2", 2, 200_000, numbered("2"))
	n.WaitFor(t, "2 is loading", func() bool { return n.Health(t)["db"]["2"].State == "BUILDING" })
	writeVersion(t, source, "db", "3", 2, 100, numbered("3"))
	n.WaitCurrent(t, "db", "3")
	n.Expect(t, "/db/key-000099", 200, "3", "3/99")
	n.WaitFor(t, "nothing of 2 is left", func() bool {
		_, there := n.Health(t)["db"]["2"]
		return !there && !slices.ContainsFunc(storeFiles(t, c.Store), func(f string) bool { return strings.HasPrefix(f, "db/2/") })
	})
}

// TestShutdown sends SIGTERM in the middle of a load, with a request in flight before it.
func TestShutdown(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\n" + `throttle_loads = "5ms"`
	writeVersion(t, source, "db", "1", 1, 10, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	writeVersion(t, source, "db", "2", 1, 200_000, numbered("2"))
	n.WaitFor(t, "2 is loading", func() bool { return n.Health(t)["db"]["2"].State == "BUILDING" })
	start := time.Now()
	if code := n.Stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("the shutdown took %v", d)
	}
	for _, f := range storeFiles(t, c.Store) {
		if strings.HasSuffix(f, ".tmp") {
			t.Errorf("left behind: %s", f)
		}
	}
}

// TestShutdownDelay: a node with a shutdown_delay is first no longer ready, answers requests for the time of the delay,
// also over new connections, and then ends.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	const delay = 3 * time.Second
	source, c := newNode(t)
	c.Extra += fmt.Sprintf("\nshutdown_delay = %q", delay)
	writeVersion(t, source, "db", "1", 1, 10, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	n.WaitFor(t, "it is ready", func() bool { return n.Get(t, "/readyz").Code == 200 })
	start := time.Now()
	n.Signal(t, syscall.SIGTERM)
	n.WaitFor(t, "it is no longer ready", func() bool { return n.Get(t, "/readyz").Code == 503 })
	answered := 0
	for time.Since(start) < delay {
		r, err := n.TryGet("/db/key-000003")
		if time.Since(start) >= delay {
			break // it may have ended meanwhile
		}
		if err != nil || r.Code != 200 || string(r.Body) != "1/3" {
			t.Fatalf("%v after the signal: %+v, %v", time.Since(start), r, err)
		}
		answered++
	}
	if answered == 0 {
		t.Error("nothing was asked during the delay: this shows nothing")
	}
	if code := n.WaitExit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("it ended %v after the signal", took)
	}
}
