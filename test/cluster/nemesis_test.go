//go:build integration

package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// A nemesis disturbs a cluster. All that it does is drawn from its seed; how long
// the cluster takes to recover is not, so that a second run with the same seed is
// only much like the first.
//
// It goes by rounds. In each, something may happen to ZooKeeper or to the ways
// there, something to the members, and a version is published, in any order;
// after a while all is mended, in any order, too. A careful nemesis never touches
// a member before every partition of every version that is being served has all
// of its replicas again, and then only one, so that no request may fail but those
// of the member itself. A careless one knows no such limits.
type nemesis struct {
	t                 testing.TB
	c                 *cluster
	r                 *recording
	rng               *rand.Rand
	look              *look
	version           int // the newest that was published
	careless          bool
	zookeeper, member bag // which fault comes next
}

// A bag has each number up to n once, in any order, and is filled again when it is empty: as many draws as it has numbers have each fault come.
type bag []int

func (b *bag) draw(rng *rand.Rand, n int) int {
	if len(*b) == 0 {
		*b = rng.Perm(n)
	}
	next := (*b)[0]
	*b = (*b)[1:]
	return next
}

// How many faults ZooKeeper and members have. One fault of ZooKeeper is that nothing happens.
const (
	zookeeperFaults = 7
	memberFaults    = 6
)

// A fault is something that can be done and undone.
type fault struct {
	name     string
	do, undo func()
}

var noFault = fault{"nothing", func() {}, func() {}}

// round runs the faults of one round, and publishes a version.
func (n *nemesis) round() {
	n.t.Helper()
	faults := []fault{n.zookeeperFault()}
	if n.careless {
		for range 1 + n.rng.IntN(len(n.c.members)) {
			faults = append(faults, n.memberFault(n.pick()))
		}
	} else {
		faults = append(faults, n.memberFault(n.pick()))
	}
	faults = append(faults, fault{"publish", n.publish, func() {}})
	n.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		n.say("do: " + f.name)
		f.do()
		n.wait(600 * time.Millisecond)
	}
	if n.rng.IntN(4) == 0 {
		n.hold(sessionTimeout + time.Second) // sessions expire
	} else {
		n.wait(time.Second)
	}
	n.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		n.say("undo: " + f.name)
		f.undo()
		n.wait(600 * time.Millisecond)
	}
}

// say writes a line into the history.
func (n *nemesis) say(what string) { n.r.note(checker.Fault, nil, what) }

// wait lets things be as they are for up to d.
func (n *nemesis) wait(d time.Duration) { n.hold(time.Duration(n.rng.Int64N(int64(d)))) }

func (n *nemesis) hold(d time.Duration) { time.Sleep(d) }

func (n *nemesis) pick() *member { return n.c.members[n.rng.IntN(len(n.c.members))] }

// some are a few of the members, or all.
func (n *nemesis) some() []*member {
	var some []*member
	for _, i := range n.rng.Perm(len(n.c.members))[:1+n.rng.IntN(len(n.c.members))] {
		some = append(some, n.c.members[i])
	}
	return some
}

func (n *nemesis) publish() {
	n.version++
	n.r.publish(n.t, versionName(n.version))
}

// zookeeperFault is one of the faults that must not affect reads.
func (n *nemesis) zookeeperFault() fault {
	some := n.some()
	each := func(name string, do, undo func(m *member)) fault {
		f := fault{name: name,
			do: func() {
				for _, m := range some {
					do(m)
				}
			},
			undo: func() {
				for _, m := range some {
					undo(m)
				}
			}}
		for _, m := range some {
			f.name += " " + m.name
		}
		return f
	}
	servers := len(n.c.zk.servers)
	switch one := n.rng.IntN(servers); n.zookeeper.draw(n.rng, zookeeperFaults) {
	case 0:
		return each("refused by ZooKeeper", func(m *member) { m.link.refuse() }, func(m *member) { m.link.allow(n.t) })
	case 1:
		return each("not heard by ZooKeeper", func(m *member) { m.link.hold(n.t) }, func(m *member) { m.link.release() })
	case 2:
		return each("cut off from ZooKeeper", func(m *member) { m.host.lose(n.t, zookeeperIP) }, func(m *member) { m.host.find(n.t, zookeeperIP) })
	case 3:
		return fault{fmt.Sprintf("kill server %d of ZooKeeper", one), func() { n.c.zk.kill(n.t, one) }, func() { n.c.zk.restart(n.t, one) }}
	case 4:
		return fault{"kill all servers of ZooKeeper", func() { n.c.zk.killAll(n.t) }, func() { n.c.zk.restartAll(n.t) }}
	case 5:
		return fault{"end all sessions of ZooKeeper", func() { n.c.zk.expire(n.t) }, func() {}}
	}
	return noFault
}

// memberFault is something that a member does not survive, or cannot answer in.
// It does nothing if another fault has hold of the member.
func (n *nemesis) memberFault(m *member) fault { return n.ifUp(m, n.faultOf(m)) }

// ifUp is a fault of a member that does nothing if another fault has hold of it.
func (n *nemesis) ifUp(m *member, f fault) fault {
	do, undo, done := f.do, f.undo, false
	f.do = func() {
		if done = m.up && !m.paused && !m.cut; done {
			do()
		}
	}
	f.undo = func() {
		if done {
			undo()
		}
	}
	return f
}

func (n *nemesis) faultOf(m *member) fault {
	switch n.member.draw(n.rng, memberFaults) {
	case 0:
		return fault{"kill " + m.name, func() { n.kill(m) }, func() { n.start(m) }}
	case 1:
		return fault{"terminate " + m.name, func() { n.terminate(m) }, func() { n.start(m) }}
	case 2:
		return fault{"kill and restart " + m.name, func() { n.kill(m); n.start(m) }, func() {}}
	case 3:
		return fault{"pause " + m.name, func() { n.pause(m) }, func() { n.resume(m) }}
	case 4:
		return fault{"isolate " + m.name, func() { n.isolate(m) }, func() { n.unite(m) }}
	}
	other := n.pick()
	for other == m {
		other = n.pick()
	}
	name := fmt.Sprintf("separate %s and %s", m.name, other.name)
	return fault{name, func() { cut(n.t, m.host, other.host); m.cut = true }, func() { join(n.t, m.host, other.host); m.cut = false }}
}

func (n *nemesis) kill(m *member) {
	n.r.note(checker.Down, m, "kill")
	m.kill()
}

func (n *nemesis) terminate(m *member) {
	n.r.note(checker.Down, m, "terminate")
	m.terminate(n.t)
}

func (n *nemesis) start(m *member) {
	n.r.note(checker.Start, m, "")
	m.start(n.t)
	n.r.note(checker.Up, m, "")
}

func (n *nemesis) pause(m *member) {
	n.r.note(checker.Pause, m, "")
	m.pause(n.t)
}

func (n *nemesis) resume(m *member) {
	m.resume(n.t)
	n.r.note(checker.Resume, m, "")
}

// isolate cuts a member off from all others. Its clients may get errors.
func (n *nemesis) isolate(m *member) {
	n.r.note(checker.Unsafe, m, "isolated")
	m.cut = true
	for _, other := range n.c.members {
		if other != m {
			cut(n.t, m.host, other.host)
		}
	}
}

func (n *nemesis) unite(m *member) {
	for _, other := range n.c.members {
		if other != m {
			join(n.t, m.host, other.host)
		}
	}
	m.cut = false
}

// recover waits until the faults of a round have left no trace: every member that
// serves a version finds all replicas of it, and knows where they are.
func (n *nemesis) recover() {
	n.t.Helper()
	reason := ""
	process.Eventually(n.t, "the cluster is whole again", seldom(func() bool {
		if next := n.broken(); next != reason {
			reason = next
			n.say("not whole: " + reason)
		}
		return reason == ""
	}))
	for _, m := range n.c.members {
		n.r.note(checker.Safe, m, "")
	}
	n.r.note(checker.Safe, nil, "")
}

// broken returns what is wrong with the cluster, "" if nothing is.
func (n *nemesis) broken() string {
	versions := map[string]bool{}
	for _, m := range n.c.live() {
		version, s := m.unsettled(n.t)
		if s != "" {
			return m.name + " " + s
		}
		versions[version] = true
	}
	for version := range versions {
		if s := n.c.lacks(n.t, n.look, version); s != "" {
			return s
		}
	}
	return ""
}

// unsettled returns what a member waits for according to its status, or that it serves a version
// with all replicas.
func (m *member) unsettled(t testing.TB) (serves, what string) {
	t.Helper()
	version, s := m.current(t), m.status(t)
	v, known := s.DBs[db].Versions[version]
	switch {
	case version == "" || !known:
		return "", "serves nothing"
	case !s.ZooKeeper.Connected || s.ZooKeeper.Pending > 0:
		return "", fmt.Sprintf("is not done with ZooKeeper: %+v", s.ZooKeeper)
	case v.Missing+v.Underreplicated > 0:
		return "", fmt.Sprintf("serves %s and knows too few replicas: %v", version, v.Histogram)
	}
	return version, ""
}

// waitSettled waits until all members that run know all replicas of what they serve.
func (c *cluster) waitSettled(t testing.TB) {
	t.Helper()
	for _, m := range c.live() {
		m.node.WaitFor(t, m.name+" knows all replicas", func() bool {
			_, what := m.unsettled(t)
			return what == ""
		})
	}
}

// calm waits until every member serves the newest version, and its clients have seen that.
func (n *nemesis) calm() {
	n.t.Helper()
	newest := versionName(n.version)
	n.r.Note(checker.Event{Kind: checker.Calm, Version: newest})
	since := n.r.Now()
	n.c.waitServed(n.t, newest)
	for _, m := range n.c.live() {
		process.Eventually(n.t, m.name+" answers its clients from "+newest, func() bool { return n.r.heard(m, newest, since) })
	}
}
