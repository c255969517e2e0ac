//go:build integration

package cluster

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
	"sequins/test/process"
)

// TestZones: in a cluster of three zones, nodes, a router and both clients read in their own zone. While it is lost, no read fails,
// and when it is back, they return to it.
func TestZones(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 12}, members: 6, replication: 3, sharding: []string{`assignment = "balanced"`}})
	for i, m := range c.members {
		m.sharding = []string{fmt.Sprintf("zone = %q", []string{"a", "b", "c"}[i/2])}
	}
	c.begin(t, versionName(1))
	router := c.add(t, `role = "router"`, `zone = "a"`)
	router.start(t)
	router.node.WaitCurrent(t, db, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	cl, err := client.New(client.Options{Addrs: []string{router.addr(), c.members[2].addr()}, Zone: "a", Timeout: process.Deadline, RefreshPeriod: time.Second})
	expect.NoError(t, err)
	defer cl.Close()
	s := &staying{T: t, c: c, cl: cl, router: router}
	s.wait("reads stay")

	stop := s.readAlong()
	for _, m := range c.members[:2] {
		m.kill()
	}
	process.Eventually(t, "the members of the zone have left", func() bool {
		return strings.Count(router.node.Log(), "node has left") >= 2
	})
	s.all("without the zone")
	for _, m := range c.members[:2] {
		m.start(t)
	}
	c.waitServed(t, versionName(1))
	stop()
	s.wait("reads are back")
}

// staying is a cluster with clients in the zone of its first two members and of its router.
type staying struct {
	*testing.T
	c      *cluster
	cl     *client.Client
	router *member
}

// wait waits until at least 99 % of the reads of each kind stay in their zone.
func (s *staying) wait(what string) {
	s.Helper()
	last := ""
	defer func() { s.Logf("%s: %s", what, last) }()
	process.Eventually(s, what, func() bool {
		before, same, all := s.cl.Stats(), s.c.sum(s, attemptsInZone), s.c.sum(s, attempts)
		s.all(what)
		after := s.cl.Stats()
		direct := float64(after.SameZone-before.SameZone) / float64(after.Attempts-before.Attempts)
		proxied := (s.c.sum(s, attemptsInZone) - same) / (s.c.sum(s, attempts) - all)
		python := s.python()
		last = fmt.Sprintf("%.2f %% of the attempts of the client, %.2f %% of those of nodes, %.2f %% of the requests in Python", 100*direct, 100*proxied, 100*python)
		return direct >= 0.99 && proxied >= 0.99 && python >= 0.99
	})
}

// all reads each key with the client, and from each member that runs.
func (s *staying) all(what string) {
	s.Helper()
	for i := range s.c.data.keys {
		key := s.c.data.key(i)
		want, there := s.c.data.value(key, versionName(1))
		if v, err := s.cl.Get(s.Context(), db, []byte(key)); there && (err != nil || string(v.Data) != want) {
			s.Errorf("%s: %s: %q, %v", what, key, v.Data, err)
		}
	}
	for _, m := range s.c.live() {
		cl := m.node.Client()
		if err := s.c.expectAll(cl, m, versionName(1), nil, 0, 1); err != nil {
			s.Errorf("%s: %v", what, err)
		}
		cl.Close()
	}
}

// python reads each key four times with the Python client, and returns which part of its requests are to members of its zone.
func (s *staying) python() float64 {
	s.Helper()
	var keys bytes.Buffer
	for i := range 4 * s.c.data.keys {
		fmt.Fprintln(&keys, hex.EncodeToString([]byte(s.c.data.key(i%s.c.data.keys))))
	}
	here := &cluster{members: s.c.members[:2]}
	same, all := here.sum(s, keyRequests), s.c.sum(s, keyRequests)
	cmd := exec.CommandContext(s.Context(), "python3", filepath.Join(process.Root(), "test", "clients", "drive.py"), "repeat", db, `{"zone": "a", "timeout": 60}`, s.c.members[2].addr())
	cmd.Stdin = &keys
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("Error")) {
		s.Errorf("python: %v, %.2000s", err, out)
	}
	return (here.sum(s, keyRequests) - same) / (s.c.sum(s, keyRequests) - all)
}

var (
	attempts       = regexp.MustCompile(`(?m)^sequins_proxy_attempts_total\{.*\} (\S+)$`)
	attemptsInZone = regexp.MustCompile(`(?m)^sequins_proxy_attempts_total\{.*zone="same"\} (\S+)$`)
	keyRequests    = regexp.MustCompile(`(?m)^sequins_requests_total\{.*route="key"\} (\S+)$`)
)

// sum is the sum of samples over all members that run.
func (c *cluster) sum(t testing.TB, samples *regexp.Regexp) (sum float64) {
	t.Helper()
	for _, m := range c.live() {
		for _, found := range samples.FindAllStringSubmatch(m.node.Metrics(t), -1) {
			n, err := strconv.ParseFloat(found[1], 64)
			expect.NoError(t, err)
			sum += n
		}
	}
	return sum
}

// readAlong reads with both clients and from the router until stop: no read may fail.
func (s *staying) readAlong() (stop func()) {
	var ended atomic.Bool
	var readers sync.WaitGroup
	reads := 0
	stopPython := s.c.walkInPython(s, `{"zone": "a", "timeout": 60}`, s.router.addr(), s.c.members[4].addr())
	readers.Go(func() {
		for ; !ended.Load(); reads++ {
			key := s.c.data.key(reads % s.c.data.keys)
			want, there := s.c.data.value(key, versionName(1))
			if v, err := s.cl.Get(s.Context(), db, []byte(key)); there && (err != nil || string(v.Data) != want) {
				s.Errorf("client: %s: %q, %v", key, v.Data, err)
			}
		}
	})
	readers.Go(func() {
		cl := s.router.node.Client()
		defer cl.Close()
		for !ended.Load() {
			if err := s.c.expectAll(cl, s.router, versionName(1), nil, 0, 1); err != nil {
				s.Error(err)
			}
		}
	})
	return func() {
		ended.Store(true)
		readers.Wait()
		s.Logf("%d reads in Go, %d in Python meanwhile", reads, stopPython())
	}
}
