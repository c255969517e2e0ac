//go:build integration

package cluster

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
	"sequins/test/process"
)

// mapOf is the map of partitions that a member answers with, as the names of nodes by partition.
func (m *member) mapOf(t testing.TB, version string) [][]string {
	t.Helper()
	r, err := m.node.TryGet("/" + db + "?partitions")
	if err != nil || r.Code != 200 {
		return nil
	}
	var a struct {
		Version, Partitioner, Scheme string
		Partitions                   int
		Nodes                        []string
		Replicas                     [][]int
	}
	if err := json.Unmarshal(r.Body, &a); err != nil || a.Scheme != "http" || a.Partitions != len(a.Replicas) || a.Nodes[0] != m.addr() {
		t.Errorf("%s: %v, %s", m.name, err, r.Body)
		return nil
	}
	if a.Version != version {
		return nil
	}
	nodes := make([][]string, a.Partitions)
	for p, replicas := range a.Replicas {
		for _, n := range replicas {
			nodes[p] = append(nodes[p], a.Nodes[n])
		}
		slices.Sort(nodes[p])
	}
	return nodes
}

// TestMapOfPartitions: the map of every member shows what the members hold.
func TestMapOfPartitions(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 10}, members: 3, replication: 2})
	version := versionName(1)
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)
	for _, m := range c.members {
		process.Eventually(t, m.name+" knows who holds what", func() bool {
			return fmt.Sprint(m.mapOf(t, version)) == fmt.Sprint(c.holdersNow(t, version))
		})
	}
	c.testDirect(t, version)
	c.testPython(t, version)
}

// holdersNow returns the addresses of the members that say of themselves that they hold a partition, by partition.
func (c *cluster) holdersNow(t testing.TB, version string) [][]string {
	t.Helper()
	all := make([][]string, c.data.partitions)
	for _, m := range c.members {
		for _, p := range m.holds(t, version) {
			all[p] = append(all[p], m.addr())
		}
	}
	for _, addrs := range all {
		slices.Sort(addrs)
	}
	return all
}

// testDirect: with the map, no node has to ask another one.
func (c *cluster) testDirect(t *testing.T, version string) {
	t.Helper()
	cl, err := client.New(client.Options{Addrs: []string{c.members[0].addr()}, Timeout: process.Deadline, RefreshPeriod: time.Second, HedgeBudget: -1})
	expect.NoError(t, err)
	defer cl.Close()
	readAll := func() {
		for i := range c.data.keys {
			key := c.data.key(i)
			want, there := c.data.value(key, version)
			v, err := cl.Get(t.Context(), db, []byte(key))
			if there && (err != nil || string(v.Data) != want) || !there && !errors.Is(err, client.ErrNotFound) {
				t.Fatalf("%s: %q, %v", key, v.Data, err)
			}
		}
	}
	process.Eventually(t, "all reads are direct", func() bool {
		before := c.proxied(t)
		readAll()
		return c.proxied(t) == before
	})
}

// proxied returns how many requests the members have sent to each other.
func (c *cluster) proxied(t testing.TB) string {
	t.Helper()
	var lines []string
	for _, m := range c.members {
		for line := range strings.Lines(m.node.Metrics(t)) {
			if strings.HasPrefix(line, "sequins_requests_total{") && strings.Contains(line, `route="peer"`) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "")
}

// testPython reads every key with the Python client.
func (c *cluster) testPython(t *testing.T, version string) {
	t.Helper()
	var in bytes.Buffer
	var want []string
	for i := range c.data.keys {
		key := c.data.key(i)
		fmt.Fprintln(&in, hex.EncodeToString([]byte(key)))
		line := version + " -"
		if value, there := c.data.value(key, version); there {
			line = version + " =" + hex.EncodeToString([]byte(value))
		}
		want = append(want, line)
	}
	cmd := exec.CommandContext(t.Context(), "python3", filepath.Join(process.Root(), "test", "clients", "drive.py"), "read", db, c.members[1].addr())
	cmd.Stdin = &in
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != strings.Join(want, "\n") {
		t.Errorf("python: %v, %.2000s", err, out)
	}
}

// readers are users of one Go client.
type readers struct {
	c       *cluster
	cl      *client.Client
	stop    atomic.Bool
	failed  atomic.Int64
	lenient atomic.Bool // reads may fail
	wg      sync.WaitGroup
	reads   atomic.Int64
	newest  atomic.Pointer[string]
}

// startReaders lets sessions of a client that knows some members read until finish.
func (c *cluster) startReaders(t testing.TB, timeout time.Duration, members []*member) *readers {
	t.Helper()
	var addrs []string
	for _, m := range members {
		addrs = append(addrs, m.addr())
	}
	cl, err := client.New(client.Options{Addrs: addrs, Timeout: timeout, RefreshPeriod: 2 * time.Second})
	expect.NoError(t, err)
	r := &readers{c: c, cl: cl}
	t.Cleanup(func() {
		r.finish()
		cl.Close()
	})
	for range 4 {
		r.wg.Go(func() { r.read(t) })
	}
	return r
}

// finish ends the readers.
func (r *readers) finish() {
	r.stop.Store(true)
	r.wg.Wait()
}

// read reads keys with a session of its own until the end: none may fail, be wrong, or be older than the one before.
func (r *readers) read(t testing.TB) {
	s, last := r.cl.Session(), ""
	for !r.stop.Load() {
		keys := make([][]byte, 1+rand.IntN(20))
		for i := range keys {
			keys[i] = []byte(r.c.data.key(rand.IntN(r.c.data.keys)))
		}
		b, err := r.one(t, s, keys)
		if err != nil {
			r.failed.Add(1)
			if !r.lenient.Load() {
				t.Errorf("a read of the session %s: %v", s, err)
			}
			continue
		}
		for i, key := range keys {
			want, there := r.c.data.value(string(key), b.Version)
			if string(b.Values[i]) != want || (b.Values[i] != nil) != there {
				t.Errorf("%s in %s is %q", key, b.Version, b.Values[i])
			}
		}
		if b.Version < last {
			t.Errorf("a session goes back from %s to %s", last, b.Version)
		}
		last = b.Version
		r.newest.Store(&b.Version)
		r.reads.Add(1)
		time.Sleep(pace)
	}
}

// one reads keys in one of several ways.
func (r *readers) one(t testing.TB, s *client.Session, keys [][]byte) (client.Batch, error) {
	if rand.IntN(4) == 0 {
		return s.MultiGet(t.Context(), db, keys)
	}
	v, err := s.Get(t.Context(), db, keys[0])
	b := client.Batch{Version: v.Version, Values: make([][]byte, len(keys))}
	if errors.Is(err, client.ErrNotFound) {
		err = nil
	}
	b.Values[0] = v.Data
	for i := range keys[1:] { // the rest must be what the version has, too
		if again, there := r.c.data.value(string(keys[i+1]), v.Version); there {
			b.Values[i+1] = []byte(again)
		}
	}
	return b, err
}

// TestGoClient: while members are killed, stopped and paused one at a time, and versions are published, no read of the Go
// client fails, is wrong, or goes back.
func TestGoClient(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 12}, members: 3, replication: 2})
	version := versionName(1)
	c.begin(t, version)
	l := z.look(t)
	c.waitWhole(t, l, version)
	r := c.startReaders(t, process.Deadline, c.members[:2])
	stopPython := c.walkInPython(t, `{"timeout": 60}`, c.members[0].addr(), c.members[1].addr())
	for i, disturb := range []func(m *member) (undo func()){
		func(m *member) func() { m.kill(); return func() { m.start(t) } },
		func(m *member) func() { m.terminate(t); return func() { m.start(t) } },
		func(m *member) func() { m.pause(t); return func() { m.resume(t) } },
	} {
		undo := disturb(c.members[i])
		r.wait(t, 300)
		undo()
		c.members[i].waitReady(t)
		version = versionName(i + 2)
		c.publish(t, version)
		process.Eventually(t, "the client reads "+version, func() bool { return *r.newest.Load() == version })
		c.waitServed(t, version)
		c.waitWhole(t, l, version)
	}
	r.finish()
	t.Logf("%d reads of Go, %d of Python", r.reads.Load(), stopPython())
}

// walkInPython reads with threads of a Python client of some options until stop, which checks the values and returns their number.
func (c *cluster) walkInPython(t testing.TB, options string, addrs ...string) (stop func() int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{filepath.Join(process.Root(), "test", "clients", "drive.py"), "walk", fmt.Sprint(c.data.keys), db, options}, addrs...)...)
	var out, stderr expect.Output
	cmd.Stdout, cmd.Stderr = &out, &stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	expect.NoError(t, err)
	return func() int {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Errorf("python: %v, %s", err, &stderr)
		}
		return c.checkWalk(t, out.String())
	}
}

// checkWalk checks the lines of a walk in Python, and returns their number.
func (c *cluster) checkWalk(t testing.TB, out string) (n int) {
	t.Helper()
	last := map[string]string{}
	for line := range strings.Lines(out) {
		n++
		words := strings.Fields(line)
		if len(words) != 4 || words[0] == "error" {
			t.Errorf("python: %s", line)
			continue
		}
		session, key, version, shown := words[0], words[1], words[2], words[3]
		want := "-"
		if value, there := c.data.value(key, version); there {
			want = "=" + hex.EncodeToString([]byte(value))
		}
		if shown != want || version < last[session] {
			t.Errorf("python, after %s: %s", last[session], line)
		}
		last[session] = version
	}
	return n
}

// wait waits for a number of reads.
func (r *readers) wait(t testing.TB, n int64) {
	t.Helper()
	until := r.reads.Load() + n
	process.Eventually(t, "the client reads on", func() bool { return r.reads.Load() >= until })
}
