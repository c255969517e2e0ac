package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/content"
	"sequins/observe/status"
	"sequins/shard"
	"sequins/zk"
)

// Options configures a Cluster.
type Options struct {
	// Session is used to publish and watch znodes. The Cluster does not close it.
	Session *zk.Session
	// ShardID and Addr (host:port) identify this node to the others. If ShardID
	// is empty, which that of a router is not, the node chooses the smallest number
	// that no other node has and stores it in ShardIDFile.
	ShardID, Addr string
	ShardIDFile   string
	Settings      Settings
	// MinReplication is the number of replicas, on any nodes, that each partition
	// needs before the node switches to the version.
	MinReplication int
	// Router makes this a node that holds no partitions.
	Router bool
	// Converge is how long the members, including this node, have to stay the
	// same before they are used. MinNodes is the number of members that a
	// starting node waits for.
	Converge time.Duration
	MinNodes int
	// HealAfter is how long the members may differ from those that partitions
	// were assigned to before they are assigned again; 0 disables it.
	HealAfter time.Duration
	// Logger receives one line for each significant event.
	Logger *slog.Logger
}

// Cluster is a node's view of the other nodes. It implements version.Cluster.
type Cluster struct {
	o       Options
	log     *slog.Logger
	self    atomic.Pointer[Member] // nil for a router, and until a shard id is chosen
	changes chan struct{}
	// patience is how long Join waits for its previous shard id while another
	// node has it.
	patience time.Duration

	joining atomic.Pointer[status.Wait] // see Joining

	members atomic.Pointer[membership]
	// dbs are the databases that any node holds partitions of. The map is
	// read-only and replaced as a whole; nil until it is known.
	dbs atomic.Pointer[map[string]bool]

	mu       sync.Mutex         // guards the following fields, and fields of watched and following, see there
	ctx      context.Context    // ends with Leave; nothing is published after that
	leave    context.CancelFunc // called with mu held
	versions map[key]*watched   // those of which an input is followed
	running  sync.WaitGroup
}

// key names a version of a database.
type key struct{ db, version string }

// watched is what other nodes publish of a version. Its directories are watched once for all of its inputs that are
// followed.
type watched struct {
	key
	c                             *Cluster
	ctx                           context.Context // ends when no input is followed, and with Leave
	end                           context.CancelFunc
	partitionsKnown, reportsKnown chan struct{} // closed when the directory has been listed
	malformed                     bool          // a malformed znode was logged; used only by updatePartitions

	// The fields below are guarded by c.mu.
	inputs         map[content.Input]*following          // the followed ones
	advertisements []advertisement                       // see withVanished
	reports        map[content.Content]map[string][]byte // by address; nil until they are known
	elsewhere      map[content.Content][]string          // of both; see Elsewhere
}

// following is the state of one followed input. It implements version.Following.
type following struct {
	*watched
	view atomic.Pointer[view] // read-only and replaced as a whole, with c.mu held

	// The fields below are guarded by c.mu.
	content    content.Content // without a division until SetDivision
	stopped    bool
	advertised map[int]bool
	assignment *assignment // nil until SetDivision
	history    history     // of its replicas
}

// A history is what has been seen of the replicas of a content since its division is known. It may be lost.
type history struct {
	switched bool // this node has switched to the content
	sufficed bool // all partitions had enough replicas at some time since then
	stable   bool // the assignment has been stable for Converge
}

// assignment says which shards have to hold the partitions of a content. It is immutable.
type assignment struct {
	owners [][]string     // shard ids by partition
	owned  []int          // by this node, ascending
	shards []shard.Member // of the membership that it was made for
	made   time.Time
}

// New returns a Cluster without members. Join connects it.
func New(o Options) *Cluster {
	c := &Cluster{
		o: o, log: o.Logger, changes: make(chan struct{}, 1), patience: o.Session.Timeout(), versions: make(map[key]*watched),
	}
	c.ctx, c.leave = context.WithCancel(context.Background())
	if !o.Router && o.ShardID != "" {
		c.self.Store(c.member(o.ShardID))
	}
	c.members.Store(newMembership(nil, c.self.Load(), o.Settings, time.Now()))
	return c
}

// member returns this node as a Member.
func (c *Cluster) member(shardID string) *Member {
	return &Member{ShardID: shardID, Addr: c.o.Addr, Settings: &c.o.Settings}
}

// ShardID returns the shard id of this node. If none was configured, it is empty
// until Join has chosen one.
func (c *Cluster) ShardID() string {
	if m := c.self.Load(); m != nil {
		return m.ShardID
	}
	return c.o.ShardID
}

// Changes implements version.Cluster.
func (c *Cluster) Changes() <-chan struct{} { return c.changes }

func (c *Cluster) changed() {
	select {
	case c.changes <- struct{}{}:
	default:
	}
}

// minLinger is the minimum time that a replaced version stays readable, as other
// nodes learn of the switch later.
const minLinger = time.Second

// Mixed implements version.Cluster.
func (c *Cluster) Mixed() bool {
	return slices.ContainsFunc(c.Members(), func(m Member) bool { return m.Settings == nil })
}

// Knows implements version.Cluster.
func (c *Cluster) Knows(db string) bool {
	dbs := c.dbs.Load()
	return dbs != nil && (*dbs)[db]
}

// Linger implements version.Cluster. Other nodes may switch later than this one.
func (c *Cluster) Linger(configured time.Duration) time.Duration { return max(configured, minLinger) }

func (c *Cluster) updateMembers(entries []zk.Entry) {
	old := c.members.Load()
	members, malformed := parseMembers(entries)
	ms := newMembership(members, c.self.Load(), c.o.Settings, time.Now())
	ms.logged = append(malformed, ms.problems...)
	ms.listed = old.listed || c.o.Router || slices.ContainsFunc(members, func(m Member) bool { return m.Addr == c.o.Addr })
	same := func(a, b Member) bool {
		return a.ShardID == b.ShardID && a.Addr == b.Addr && a.settings() == b.settings()
	}
	if ms.listed == old.listed && slices.EqualFunc(old.all, ms.all, same) {
		ms.since = old.since
	}
	c.members.Store(ms)
	c.logChanges(old, ms)
}

// logChanges logs who has joined and left, and each problem once, and again when it is resolved.
func (c *Cluster) logChanges(old, now *membership) {
	for _, m := range now.all {
		if _, known := old.shardOf[m.Addr]; !known {
			c.log.Info("node has joined", "node", m.Addr, "shard_id", m.ShardID, "nodes", len(now.all))
		}
	}
	for _, m := range old.all {
		if _, there := now.shardOf[m.Addr]; !there {
			c.log.Warn("node has left", "node", m.Addr, "shard_id", m.ShardID, "nodes", len(now.all))
		}
	}
	for _, text := range now.logged {
		if !slices.Contains(old.logged, text) {
			c.log.Error("cluster: " + text)
		}
	}
	for _, text := range old.logged {
		if !slices.Contains(now.logged, text) {
			c.log.Info("cluster: resolved: " + text)
		}
	}
}

// Members returns the nodes that data is divided among, including this node,
// ordered by shard id and address. The result is read-only.
func (c *Cluster) Members() []Member { return c.members.Load().all }

// Assignment returns the rule by which this node assigns partitions.
func (c *Cluster) Assignment() shard.Assignment { return c.o.Settings.Assignment }

// ZoneOf returns the zone of a member by its address, "" if it has none or there is no such member. It is called for requests.
func (c *Cluster) ZoneOf(addr string) string { return c.members.Load().zoneOf[addr] }

// Problems returns the differences in settings that keep the nodes from forming
// one cluster, as sentences.
func (c *Cluster) Problems() []string { return c.members.Load().problems }

// Status returns the status of the session with ZooKeeper.
func (c *Cluster) Status() zk.Status { return c.o.Session.Status() }

// ended reports whether nothing may be published any more. c.mu is held.
func (f *following) ended() bool { return f.stopped || f.c.ctx.Err() != nil }

// updateView makes the view from what is advertised. c.mu is held.
func (f *following) updateView() { f.view.Store(newView(f.advertisements, f.content)) }

// Peers implements version.Following.
func (f *following) Peers(partition int) []string { return f.view.Load().peersOf(partition) }

// Replicas implements version.Following.
func (f *following) Replicas(partition int) int { return len(f.view.Load().replicasOf(partition)) }
