//go:build integration

package hdfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"sequins/source"
	"sequins/source/hdfs"
	"sequins/test/expect"
	"sequins/test/noise"
)

// What toxiproxy does to a connection: https://github.com/Shopify/toxiproxy#toxics.
const (
	late     = `{"name": "late", "type": "latency", "attributes": {"latency": 40, "jitter": 30}}`
	narrow   = `{"name": "narrow", "type": "bandwidth", "attributes": {"rate": 1000}}` // KB a second
	crumbs   = `{"name": "crumbs", "type": "slicer", "attributes": {"average_size": 700, "size_variation": 650, "delay": 10}}`
	cutOff   = `{"name": "cut", "type": "limit_data", "attributes": {"bytes": 300000}}`                    // then it is closed
	resets   = `{"name": "resets", "type": "reset_peer", "attributes": {"timeout": 30}}`                   // milliseconds, then a RST
	lottery  = `{"name": "lottery", "type": "reset_peer", "attributes": {"timeout": 30}, "toxicity": 0.3}` // for three of ten connections
	halfOpen = `{"name": "half", "type": "timeout", "attributes": {"timeout": 0}}`                         // nothing comes any more, and nothing ends
)

// testConnections reads a file over connections that are bad in one way each. It is read right, or not at all.
func testConnections(t *testing.T, c *cluster) {
	const size = 3<<20 + 12345
	d := c.newDir()
	data := noise.Random(5, size)
	d.Put(t, "db/1/part-00000", data)
	for _, tt := range []struct {
		name  string
		toxic string
		whole bool
		least int64 // connections: there must have been something to recover from
	}{
		{"latency", late, true, 5},
		{"bandwidth", narrow, true, 5},
		{"crumbs", crumbs, true, 5},
		{"cut off after some bytes", cutOff, true, 10},
		{"reset now and then", lottery, true, 5},
		{"reset", resets, false, 4},
		{"half-open", halfOpen, false, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProxies(t)
			p.add("", tt.toxic)
			s := d.open(t, d.root, func(o *hdfs.Options) {
				o.Dial, o.Timeout = p.Dial, time.Second
				if !tt.whole {
					o.RetryFor = 5 * time.Second
				}
			})
			start := time.Now()
			f, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
			var b []byte
			if err == nil {
				defer f.Close()
				b, err = io.ReadAll(f)
			}
			if n := p.dialled.Load(); n < tt.least {
				t.Errorf("%d connections were made, want at least %d", n, tt.least)
			}
			if !bytes.HasPrefix(data, b) {
				t.Errorf("%d bytes that are not the file's", len(b))
			}
			if err == nil && len(b) != size {
				t.Errorf("%d bytes were taken for the file's %d", len(b), size)
			}
			if tt.whole && err != nil {
				t.Error(err)
			}
			if err != nil {
				says(t, err, "part-00000: gave up after", "attempts")
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// testOneDatanodeAway: if one datanode is half-open or refuses connections, its blocks are read from another.
func testOneDatanodeAway(t *testing.T, c *cluster) {
	d := c.newDir()
	data := noise.Random(6, 6<<20)
	d.Put(t, "db/1/part-00000", data)
	p := newProxies(t)
	bad := ""
	s := d.open(t, d.root, func(o *hdfs.Options) {
		o.Timeout = time.Second
		o.Dial = p.Dial
	})
	read := func() {
		t.Helper()
		f, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
		expect.NoError(t, err)
		defer f.Close()
		if b, err := io.ReadAll(f); err != nil || !bytes.Equal(b, data) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	read() // and learn who there is
	for _, address := range p.addresses() {
		if address != c.namenode {
			bad = address
		}
	}
	p.add(bad, halfOpen)
	read()
	p.stop(bad)
	read()
}

// testSilentNamenode: a request to a namenode that hangs fails in time, or succeeds when the namenode is back, and does
// not block other requests.
func testSilentNamenode(t *testing.T, c *cluster) {
	d := c.newDir()
	d.Put(t, "db/1/part-00000", []byte("x"))
	p := newProxies(t)
	s := d.open(t, d.root, func(o *hdfs.Options) { o.Dial, o.Timeout, o.RetryFor = p.Dial, time.Second, 4*time.Second })
	p.add(c.namenode, halfOpen)
	start := time.Now()
	_, err := source.Databases(t.Context(), s)
	says(t, err, "list hdfs://"+c.namenode+d.root, "gave up after")
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v is no timeout", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the error came after %v", took)
	}

	forHours := func(o *hdfs.Options) { o.Dial, o.Timeout, o.RetryFor = p.Dial, time.Hour, time.Hour }
	start = time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.open(t, d.root, forHours).Open(ctx, "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("opening under a deadline: %v", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the end of a context was obeyed after %v", took)
	}

	patient := d.open(t, d.root, func(o *hdfs.Options) { o.Dial, o.Timeout = p.Dial, time.Hour })
	ctx, hang := context.WithCancel(t.Context())
	hung := make(chan error)
	go func() {
		_, err := source.Databases(ctx, patient)
		hung <- err
	}()
	waiting := time.AfterFunc(time.Second, p.heal)
	defer waiting.Stop()
	if dbs, err := source.Databases(t.Context(), s); err != nil || len(dbs) != 1 {
		t.Errorf("once it is back: %v, %v", dbs, err)
	}
	if dbs, err := source.Databases(t.Context(), patient); err != nil || len(dbs) != 1 {
		t.Errorf("beside one who hangs: %v, %v", dbs, err)
	}
	hang()
	if err := <-hung; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// testCancelWhileSilent: a read that waits for a datanode ends with its context.
func testCancelWhileSilent(t *testing.T, c *cluster) {
	d := c.newDir()
	d.Put(t, "db/1/part-00000", noise.Random(7, 10<<20))
	p := newProxies(t)
	s := d.open(t, d.root, func(o *hdfs.Options) { o.Dial, o.Timeout, o.RetryFor = p.Dial, time.Hour, time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	f, err := s.Open(ctx, "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	p.add("", halfOpen)
	var cancelled time.Time
	time.AfterFunc(500*time.Millisecond, func() {
		cancelled = time.Now()
		cancel()
	})
	n, err := io.Copy(io.Discard, f)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after %d bytes: %v", n, err)
	}
	if took := time.Since(cancelled); took > 20*time.Second {
		t.Errorf("it returned %v after it was cancelled", took)
	}
}
