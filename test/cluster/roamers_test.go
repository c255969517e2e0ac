//go:build integration

package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// A roamer is a client that sends each request to any of the members, over a connection of its own: a member may have
// been restarted since the last one.
type roamer struct {
	r       *recording
	number  int
	members []*member
}

// roam lets sessions begin, one of each kind. They do not ask members that are added later.
func (r *recording) roam() {
	r.wg.Go(func() { r.newRoamer(0).session() })
	r.wg.Go(func() { r.newRoamer(1).pinned(50) })
	r.wg.Go(func() { r.newRoamer(2).ranges(0) })
}

func (r *recording) newRoamer(number int) *roamer {
	return &roamer{r: r, number: 1000 + number, members: slices.Clone(r.c.members)}
}

// any requests a key or a batch.
func (o *roamer) any() request {
	if rand.IntN(2) == 0 {
		return o.r.c.data.anyBatch()
	}
	return o.r.c.data.anyKey()
}

// send sends a request to one of the members.
func (o *roamer) send(q request) checker.Read {
	m := o.members[rand.IntN(len(o.members))]
	client := process.NewClient(m.addr())
	defer client.Close()
	q.read.Client = o.number
	read := o.r.send(client, m.name, q)
	o.r.add(read)
	wait(read, slowPace)
	return read
}

// session asks for the newest version that it has seen, or a later one.
func (o *roamer) session() {
	newest := ""
	for !o.r.stop.Load() {
		q := o.any()
		q.read.Session, q.read.AtLeast = fmt.Sprintf("roamer %d", o.number), newest
		if newest != "" {
			q.header += "X-Sequins-At-Least: " + newest + "\r\n"
		}
		newest = max(newest, o.send(q).Version)
	}
}

// pinned requests the version that one member serves, by name, for a number of times or until it is gone.
func (o *roamer) pinned(times int) {
	version := ""
	for n := 0; !o.r.stop.Load(); n++ {
		q := o.any()
		q.read.Exact = version
		if version != "" {
			q.header += "X-Sequins-Version: " + version + "\r\n"
		}
		switch read := o.send(q); {
		case version == "":
			version, n = read.Version, 0
		case read.Code == 412 || n >= times:
			version = ""
		}
	}
}

// TestReplacedVersions has clients ask for one version until no member has it any more, which happens soon: none of them
// gets another answer than values of that version, or that it is gone.
func TestReplacedVersions(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 12}, members: 3, replication: 1,
		extra: "version_remove_timeout = \"1ms\"\n"})
	c.begin(t, versionName(1))
	l := z.look(t)
	c.waitWhole(t, l, versionName(1))
	r := record(t, c, versionName(1))
	defer r.judge(t, "history-replaced")
	for i := range 4 {
		r.wg.Go(func() { r.newRoamer(100 + i).pinned(math.MaxInt) })
		r.wg.Go(func() { r.newRoamer(200 + i).ranges(time.Duration(i) * 200 * time.Millisecond) })
	}
	for n := 2; n <= 4; n++ {
		old, version := versionName(n-1), versionName(n)
		r.publish(t, version)
		c.waitServed(t, version)
		c.waitWhole(t, l, version)
		for _, m := range c.members {
			process.Eventually(t, m.name+" has removed "+old, func() bool {
				_, there := m.node.Health(t)[db][old]
				return !there
			})
		}
	}
}
