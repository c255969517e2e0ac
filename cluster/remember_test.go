//go:build integration

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/zk"
)

// startsAway lets a node join without ZooKeeper, and returns what it calls away with.
func startsAway(t *testing.T, c *Cluster) []string {
	t.Helper()
	c.awayAfter = 10 * time.Millisecond
	asked := make(chan []string, 2)
	go c.Join(t.Context(), func(members []string) error {
		asked <- members
		return nil
	}) //nolint:errcheck // it does not end before the test
	select {
	case members := <-asked:
		return members
	case <-time.After(deadline):
		t.Fatal("it waits on")
		return nil
	}
}

// What a node has seen of the others is there after a restart without ZooKeeper, until ZooKeeper is listed. It counts for no replica, and nothing is owned.
func TestRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "CLUSTER.json")
	before := alone(t)
	before.o.Remembered, before.o.Addr = path, "me:1"
	before.updateMembers([]zk.Entry{{Name: "me@me:1", Data: []byte(`{"weight":1}`)}, {Name: "a@a:1", Data: []byte(`{"weight":1}`)}, {Name: "old@upstream:1"}})
	f := before.follow("db", x.Input)
	f.SetDivision(x.Division, 2)
	f.updatePartitions([]zk.Entry{znode(0, "a:1", x), znode(1, "a:1", x), znode(1, "b:1", x, y), {Name: "00000@upstream:1"}})
	f.updatePartitions([]zk.Entry{znode(0, "a:1", x), znode(1, "a:1", x)}) // b has left lately
	before.leave()
	before.keepRemembered()

	c := alone(t)
	c.o.Remembered, c.o.AskRemembered = path, true
	if members := startsAway(t, c); !slices.Equal(members, []string{"a:1", "b:1"}) {
		t.Errorf("it asks %v", members)
	}
	g := c.Follow(t.Context(), "db", x.Input).(*following)
	g.SetDivision(x.Division, 2)
	got := fmt.Sprint(g.Peers(0), g.Peers(1), g.Replicas(0), g.Replicas(1), g.Owned(2), c.MayBeUpstream("a:1"))
	if want := "[a:1] [a:1 b:1] 0 0 [] false"; got != want {
		t.Errorf("away: %s, want %s", got, want)
	}
	if other := c.Follow(t.Context(), "db", y.Input); len(other.Peers(1)) != 1 {
		t.Errorf("peers of the other content: %v", other.Peers(1))
	}
	g.updatePartitions([]zk.Entry{znode(0, "c:1", x)})
	if got, want := fmt.Sprint(g.Peers(0), g.Peers(1), g.Replicas(0), g.Replicas(1)), "[c:1 a:1] [a:1 b:1] 1 0"; got != want {
		t.Errorf("when ZooKeeper is listed: %s, want %s", got, want)
	}
	c.arrive()
	if owned := g.Owned(2); !slices.Equal(owned, []int{0, 1}) || c.away.Load() {
		t.Errorf("it has joined and owns %v", owned)
	}
}

// A file that is not there, damaged or hostile is as none. What may not be asked is not.
func TestRememberedBadly(t *testing.T) {
	of := func(partition string) string {
		return fmt.Sprintf(`{"members":["a:1"],"held":[{"db":"db","content":{"name":"1","input":%q,"division":%q},"nodes":{"a:1":[%s]}}]}`, x.Hash, x.Division, partition)
	}
	for name, test := range map[string]struct {
		text  string
		ask   bool
		asked int
		peers int
	}{
		"good":         {of("0"), true, 1, 1},
		"may not ask":  {of("0"), false, 0, 0},
		"cut off":      {of("0")[:60], true, 0, 0},
		"negative":     {of("-1"), true, 1, 0},
		"too many":     {of("99999999999"), true, 1, 0},
		"no content":   {strings.Replace(of("0"), x.Hash, "..", 1), true, 1, 0},
		"of no length": {"", true, 0, 0},
	} {
		c := alone(t)
		c.o.Remembered, c.o.AskRemembered = filepath.Join(t.TempDir(), "CLUSTER.json"), test.ask
		expect.NoError(t, os.WriteFile(c.o.Remembered, []byte(test.text), 0o600))
		members := startsAway(t, c)
		if peers := c.Follow(t.Context(), "db", x.Input).Peers(0); len(members) != test.asked || len(peers) != test.peers {
			t.Errorf("%s: asked %v, peers %v", name, members, peers)
		}
	}
}

// A node that has started without ZooKeeper does not take a listing of itself for the cluster, unless it remembers nobody or min_nodes allows it.
func testAloneAfterAway(t *testing.T, server string) {
	for name, test := range map[string]struct {
		members  string
		minNodes int
		joins    bool
	}{
		"remembers":             {`["a:1"]`, 0, false},
		"remembers nobody":      {`[]`, 0, true},
		"min_nodes":             {`["a:1"]`, 1, true},
		"min_nodes not fitting": {`["a:1"]`, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTestCluster(t, server, func(o *Options) {
				o.Remembered, o.MinNodes, o.Converge = filepath.Join(t.TempDir(), "CLUSTER.json"), test.minNodes, 10*time.Millisecond
				expect.NoError(t, os.WriteFile(o.Remembered, []byte(`{"members":`+test.members+`}`), 0o600))
			})
			c, _ := f.node("me")
			c.recall() // as after a while without ZooKeeper
			joined := make(chan error, 1)
			go func() { joined <- c.Join(t.Context(), nil) }()
			if test.joins {
				if err := <-joined; err != nil {
					t.Error(err)
				}
				return
			}
			f.eventually("it waits for others", func() bool {
				w := c.Joining()
				return w != nil && (w.What == "another node, as there were some before the restart" || w.What == "1 nodes of 2")
			})
			other, _ := f.node("other")
			other.o.MinNodes = 2
			f.join(other)
			if err := <-joined; err != nil || len(c.Members()) != 2 {
				t.Errorf("with another node: %v, members %v", err, c.Members())
			}
		})
	}
}
