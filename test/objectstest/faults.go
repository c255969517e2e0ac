package objectstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/noise"
)

// testFaults begins faults in the middle of a read: some that a reader has to survive, and others that end before the
// attempts do.
func testFaults(t *testing.T, s Store) {
	t.Parallel()
	data := noise.Random(1, 6<<20)
	s.shared().Put(t, "db/1/file", data)
	for name, test := range map[string]struct {
		toxic  string
		passes bool
	}{
		"latency":        {`{"type": "latency", "attributes": {"latency": 100, "jitter": 50}}`, false},
		"slices":         {`{"type": "slicer", "attributes": {"average_size": 1000, "size_variation": 500, "delay": 10}}`, false},
		"bandwidth":      {`{"type": "bandwidth", "attributes": {"rate": 4000}}`, false},
		"cut connection": {`{"type": "limit_data", "attributes": {"bytes": 200000}}`, false}, // each, before a part is over
		"silence":        {`{"type": "timeout", "attributes": {"timeout": 0}}`, true},
		"deaf server":    {`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`, true},
		"resets":         {`{"type": "reset_peer", "attributes": {"timeout": 0}}`, true},
		"late resets":    {`{"type": "reset_peer", "attributes": {"timeout": 100}}`, true},
		"short answer":   {`{"type": "limit_data", "attributes": {"bytes": 100}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := s.faulty(t)
			o.MaxRetries = 8
			f, err := s.open(t, o).Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
			expect.NoError(t, err)
			defer f.Close()
			head := make([]byte, 1<<20)
			if _, err := io.ReadFull(f, head); err != nil {
				t.Fatal(err)
			}
			p.Treat(t, test.toxic)
			if test.passes {
				time.AfterFunc(3*o.Timeout, func() { p.Heal(t) })
			}
			rest, err := io.ReadAll(f)
			if err != nil || string(head)+string(rest) != string(data) {
				t.Errorf("%d bytes after it, %v", len(rest), err)
			}
		})
	}
}

// testCutListing lists over connections that end in the middle of a page.
func testCutListing(t *testing.T, s Store) {
	t.Parallel()
	server := s.shared()
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("db/1/part-%05d", i))
	}
	putAll(t, server, keys, nil)
	p, endpoint := proxy(t, server)
	o := s.options(endpoint, "")
	o.MaxRetries = 8 // the pauses of the first three can be over before the fault is
	src := s.open(t, o)
	p.Treat(t, `{"type": "limit_data", "attributes": {"bytes": 6000}}`)
	time.AfterFunc(700*time.Millisecond, func() { p.Heal(t) })
	c, err := src.Contents(t.Context(), "db", "1")
	if err != nil || len(c.Files) != len(keys) {
		t.Errorf("%d files, %v, want %d", len(c.Files), err, len(keys))
	}
}

// testSilence has a server fall silent for good.
func testSilence(t *testing.T, s Store) {
	t.Parallel()
	server := s.start(t)
	server.Put(t, "db/1/file", noise.Random(1, 32<<20)) // more than is on its way at a time
	o := s.options(server.Endpoint(), "")
	o.Timeout, o.MaxRetries = 2*time.Second, 1
	src := s.open(t, o)
	f, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	if _, err := io.CopyN(io.Discard, f, 1<<20); err != nil {
		t.Fatal(err)
	}
	server.Freeze(t)
	var readErr, listErr error
	within(t, time.Minute, "giving up", func() {
		var wg sync.WaitGroup
		wg.Go(func() { _, readErr = io.Copy(io.Discard, f) })
		wg.Go(func() { _, listErr = source.Databases(t.Context(), src) })
		wg.Wait()
	})
	for url, err := range map[string]error{s.url(s.Bucket, "db/1/file"): readErr, s.url(s.Bucket, ""): listErr} {
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), url) {
			t.Errorf("%s: %v, want that a deadline was exceeded", url, err)
		}
	}
}

// testServerGone kills the server in the middle of a read.
func testServerGone(t *testing.T, s Store) {
	t.Parallel()
	server := s.start(t)
	server.Put(t, "db/1/file", noise.Random(1, 8<<20))
	o := s.options(server.Endpoint(), "")
	o.MaxRetries = 1
	f, err := s.open(t, o).Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	server.Kill()
	within(t, time.Minute, "giving up", func() { _, err = io.Copy(io.Discard, f) })
	if err == nil || !strings.Contains(err.Error(), s.url(s.Bucket, "db/1/file")) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v, want that the connection was refused", err)
	}
}

// testCancelInSilence cancels calls that wait for a silent server, long before
// its deadline.
func testCancelInSilence(t *testing.T, s Store) {
	t.Parallel()
	s.shared().Put(t, "db/1/file", noise.Random(1, 8<<20))
	p, o := s.faulty(t)
	o.Timeout = time.Hour
	src := s.open(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	f, err := src.Open(ctx, "db", "1", source.File{Name: "file"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	if _, err := io.CopyN(io.Discard, f, 1<<20); err != nil {
		t.Fatal(err)
	}
	p.Treat(t, `{"type": "timeout", "attributes": {"timeout": 0}}`)
	time.AfterFunc(100*time.Millisecond, cancel)
	within(t, 20*time.Second, "a read that was cancelled", func() { _, err = io.Copy(io.Discard, f) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("reading: %v", err)
	}
	within(t, 20*time.Second, "closing", func() { f.Close() })

	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	within(t, 20*time.Second, "a listing that was cancelled", func() { _, err = source.Databases(ctx, src) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("listing: %v", err)
	}
}
