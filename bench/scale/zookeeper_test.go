package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	ours "sequins/zk"

	"sequins/test/expect"
	"sequins/test/harness"
)

// What the simulation takes for granted of a real server: that it sends a directory of more than 1 MiB to clients that
// read it, how fast, and how fast it takes what nodes publish. The figures are in the log; -v shows them.
func TestZooKeeper(t *testing.T) {
	t.Chdir("../..") // where the harness is looked for
	h := harness.Start(t)
	servers := strings.Split(h.Do(t, "zk start n=3")["connect"], ",")
	clients := []int{30, 20}
	if testing.Short() {
		clients = clients[:1]
	}
	for _, nodes := range clients {
		measure(t, servers, nodes, 1000, fmt.Sprintf("v%d", nodes))
	}
}

func options(t *testing.T, servers []string) ours.Options {
	return ours.Options{Servers: servers, ConnectTimeout: 10 * time.Second, SessionTimeout: 30 * time.Second,
		Root: "/sequins/v1", Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// measure has nodes publish so many partitions each, all at once, and lists them.
func measure(t *testing.T, servers []string, nodes, each int, version string) {
	follower := ours.Connect(options(t, servers))
	defer follower.Close()
	changes := make(chan struct{}, 1)
	var seen atomic.Int64
	follower.Watch(ours.VersionDir("db", version), func(entries []ours.Entry) {
		seen.Store(int64(len(entries)))
		select {
		case changes <- struct{}{}:
		default:
		}
	})
	<-changes // it has been listed

	took, stop := publish(t, servers, nodes, each, version)
	defer stop()
	t.Logf("%d nodes published %d znodes in %v: %.0f/s", nodes, nodes*each, took, float64(nodes*each)/took.Seconds())
	began := time.Now()
	for seen.Load() != int64(nodes*each) {
		select {
		case <-changes:
		case <-time.After(time.Minute):
			t.Fatalf("a minute later the view has %d of %d znodes", seen.Load(), nodes*each)
		}
	}
	t.Logf("the view was complete %v later", time.Since(began))
	list(t, servers, "/sequins/v1/"+ours.VersionDir("db", version), nodes*each)
}

// publish has sessions publish all at once, and returns how long that took.
func publish(t *testing.T, servers []string, nodes, each int, version string) (took time.Duration, stop func()) {
	var sessions []*ours.Session
	for range nodes {
		s := ours.Connect(options(t, servers))
		sessions = append(sessions, s)
		s.Publish("warm/"+version, nil)
		flush(t, s)
		s.Unpublish("warm/" + version)
		flush(t, s)
	}
	began := time.Now()
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			for p := range each {
				s.Publish(ours.PartitionPath("db", version, i*each+p, fmt.Sprintf("node-%04d.dc1.example.internal:9599", i)), nil)
			}
			flush(t, s)
		})
	}
	all.Wait()
	took = time.Since(began)
	return took, func() {
		for _, s := range sessions {
			all.Go(func() { _ = s.Close() })
		}
		all.Wait()
	}
}

func flush(t *testing.T, s *ours.Session) {
	for began := time.Now(); s.Status().State != ours.Connected || s.Status().Pending > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Errorf("not everything is published: %+v", s.Status())
			return
		}
	}
}

// list reads the directory many times, one after another and side by side.
func list(t *testing.T, servers []string, dir string, want int) {
	var conns []*zk.Conn
	for range 8 {
		c, _, err := zk.Connect(servers, 30*time.Second, zk.WithLogInfo(false))
		expect.NoError(t, err)
		defer c.Close()
		conns = append(conns, c)
	}
	size := 0
	once := func(c *zk.Conn) (time.Duration, error) {
		began := time.Now()
		names, _, err := c.Children(dir)
		if err == nil && len(names) != want {
			err = fmt.Errorf("%d names, want %d", len(names), want)
		}
		return time.Since(began), err
	}
	names, _, err := conns[0].Children(dir)
	expect.NoError(t, err)
	for _, name := range names {
		size += 4 + len(name)
	}
	var times []time.Duration
	for range 20 {
		d, err := once(conns[0])
		expect.NoError(t, err)
		times = append(times, d)
	}
	slices.Sort(times)
	began := time.Now()
	var group errgroup.Group
	for _, c := range conns {
		group.Go(func() error {
			for range 10 {
				if _, err := once(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	expect.NoError(t, group.Wait())
	together := float64(10*len(conns)*size) / time.Since(began).Seconds() / 1e6
	t.Logf("%d names, %d bytes: listed in %v (fastest %v); %.0f MB/s for %d clients", want, size, times[len(times)/2], times[0], together, len(conns))
}
