package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/test/balance"
)

// The names of drills without failures.
const (
	rolling = "a rolling restart"
	upgrade = "an upgrade"
)

// A drill is something that happens to a cluster.
type drill struct {
	name   string
	before func(c *cluster) error // done when no requests are sent
	during func(c *cluster) error
}

// drills are the events that a cluster goes through, one after the other. The last one removes its source permanently.
var drills = []drill{
	{"nothing happens", (*cluster).awaitWhole, (*cluster).rest},
	{rolling, (*cluster).awaitWhole, (*cluster).roll},
	{"kill -9 of one of three", (*cluster).awaitWhole, (*cluster).kill},
	{upgrade, (*cluster).awaitWhole, (*cluster).upgrade},
	{"all start, the source is away", (*cluster).takeAway, (*cluster).startAll},
	{"two of three start, the source is away", (*cluster).endAll, (*cluster).startTwo},
}

// calm is for how long requests are sent before and after what happens.
const calm = time.Second

// perform sends requests to a cluster while something happens to it.
func (c *cluster) perform(d drill) (balance.Summary, error) {
	if err := d.before(c); err != nil {
		return balance.Summary{}, err
	}
	l := c.load()
	time.Sleep(calm)
	err := d.during(c)
	time.Sleep(calm)
	return balance.Summarize(l.Stop()), err
}

// restTime is about as long as a rolling restart.
const restTime = 10 * time.Second

// rest measures without an event, which shows the influence of the machine.
func (c *cluster) rest() error {
	time.Sleep(restTime)
	return nil
}

// roll restarts one node after the other, as a deployment does that waits for /readyz.
func (c *cluster) roll() error {
	for _, n := range c.nodes {
		if err := n.end(syscall.SIGTERM); err != nil {
			return err
		}
		if err := n.startReady(); err != nil {
			return err
		}
		time.Sleep(calm / 2)
	}
	return nil
}

func (n *node) startReady() error {
	if err := n.start(); err != nil {
		return err
	}
	return await(n.addr+" is ready", readyTime, n.ready)
}

func (c *cluster) kill() error {
	if err := c.nodes[1].end(syscall.SIGKILL); err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // without it
	return c.nodes[1].startReady()
}

func (c *cluster) upgrade() error {
	if err := c.publish(); err != nil {
		return err
	}
	return c.awaitWhole()
}

// takeAway ends all nodes and takes the source away.
func (c *cluster) takeAway() error {
	if err := c.awaitWhole(); err != nil {
		return err
	}
	if err := c.endAll(); err != nil {
		return err
	}
	return os.Rename(c.source(), c.source()+".away")
}

// endAll ends all nodes and removes their stores from the page cache.
func (c *cluster) endAll() error {
	for _, n := range c.nodes {
		if err := n.end(syscall.SIGTERM); err != nil {
			return err
		}
		blocks, err := data.Files(filepath.Join(n.store, "data"))
		if err != nil {
			return err
		}
		if err := proc.Drop(blocks...); err != nil {
			return err
		}
	}
	return nil
}

// startTime is how long a start without the source is looked at.
const startTime = 20 * time.Second

func (c *cluster) startAll() error { return together(c.nodes) }
func (c *cluster) startTwo() error { return together(c.nodes[:2]) }

// together starts nodes at the same time, and waits until they are ready or it has taken too long.
func together(nodes []*node) error {
	for _, n := range nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	if err := await("all nodes are ready", startTime, func() bool {
		for _, n := range nodes {
			if !n.ready() {
				return false
			}
		}
		return true
	}); err != nil {
		setup.Logf("%v", err)
	}
	return nil
}

// seen is which versions a node has answered from, and since when.
type seen struct {
	mu      sync.Mutex
	version string
	changes []change
}

type change struct {
	at      time.Duration
	version string
}

// check refuses an answer to a request that was sent after one from a newer version had arrived.
func (s *seen) check(sent, now time.Duration, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes {
		if c.at < sent && c.version > version {
			return fmt.Errorf("version %q after %q", version, c.version)
		}
	}
	if version > s.version {
		s.version = version
		s.changes = append(s.changes, change{now, version})
	}
	return nil
}

// load sends GETs of random records.
func (c *cluster) load() *balance.Client {
	rng := rand.New(rand.NewPCG(5, 5))
	ids := make([]int, 100_000)
	for i := range ids {
		ids[i] = rng.IntN(c.spec.Records)
	}
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr)
	}
	versions := make([]seen, len(addrs))
	begin := time.Now()
	return balance.Start(balance.Options{Addrs: addrs, Rate: *rate, Probe: *probe,
		Target: func(n int) string { return "/" + data.DB + "/" + string(c.spec.Key(nil, ids[n%len(ids)])) },
		Check: func(n int, a balance.Answer) error {
			if err := versions[a.Node].check(a.Sent, time.Since(begin), a.Header.Get("X-Sequins-Version")); err != nil {
				return err
			}
			return c.spec.Verify(ids[n%len(ids)], a.Body, a.Code == 200, nil)
		}})
}
