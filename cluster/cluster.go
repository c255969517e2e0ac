package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/content"
	"sequins/observe/status"
	"sequins/shard"
	"sequins/version/report"
	"sequins/zk"
)

// Options configures a Cluster.
type Options struct {
	// Session is used to publish and watch znodes. Leave closes it.
	Session *zk.Session
	// ShardID and Addr (host:port) identify this node to the others. If ShardID
	// is empty, which that of a router is not, the node chooses the smallest number
	// that no other node has and stores it in ShardIDFile.
	ShardID, Addr string
	ShardIDFile   string
	// Remembered is the file that keeps what this node knows of the others, see Join. AskRemembered reports whether nodes that are known
	// from there may be asked: a secret must not reach a node that has taken over the address of another one.
	Remembered    string
	AskRemembered bool
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
	changes chan map[string]bool   // see Changes; it has a buffer of one
	// switched wakes keepRemembered.
	switched chan struct{}
	// patience is how long Join waits for its previous shard id while another
	// node has it, and awayAfter how long for ZooKeeper until it goes on without.
	patience, awayAfter time.Duration

	joining atomic.Pointer[status.Wait] // see Joining

	members atomic.Pointer[membership]
	// away: this node answers requests without having joined, see Join. recalled is what it remembered then; nil if it never was away.
	away     atomic.Bool
	recalled atomic.Pointer[remembered]
	// dbs are the databases that any node holds partitions of, by name; nil until they are known.
	dbs atomic.Pointer[[]zk.Entry]

	mu          sync.Mutex      // guards the following fields, and fields of watched and following, see there
	ctx         context.Context // ends with Leave
	leave       context.CancelFunc
	versions    map[key]*watched // those of which an input is followed
	listing     []zk.Entry       // of the nodes
	rule        shard.Assignment // of the cluster; "" until it is known
	unknownRule string           // a problem, see updateRule
	running     sync.WaitGroup
}

// key names a version of a database.
type key struct{ db, version string }

// watched is what other nodes publish of a version. Its directories are watched once for all of its inputs that are
// followed.
type watched struct {
	key
	c         *Cluster
	dirs      [2]*zk.Children // of the partitions, and of the reports
	known     context.Context // ends when both have been listed, and with Leave
	setKnown  context.CancelFunc
	malformed bool // a malformed znode was logged; used only by updatePartitions

	// The fields below are guarded by c.mu.
	inputs         map[content.Input]*following                 // the followed ones
	listed         bool                                         // advertisements are not those that were remembered
	advertisements []advertisement                              // see withVanished
	reports        map[content.Content]map[string]report.Report // by address; nil until they are known
	elsewhere      map[content.Content][]string                 // of both; see Elsewhere
	parsed         map[string]parsedReport                      // what the reports were parsed from, by the name of the znode
}

// A parsedReport is a report, and the data of its znode.
type parsedReport struct {
	data []byte
	report.Report
}

// following is the state of one followed input. It implements version.Following.
type following struct {
	*watched
	view atomic.Pointer[view] // read-only and replaced as a whole, with c.mu held

	// The fields below are guarded by c.mu.
	content    content.Content // without a division until SetDivision
	stopped    bool
	advertised map[int]bool
	partitions int         // 0 until SetDivision
	assignment *assignment // nil until SetDivision, and while this node is away
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
	owners [][]string // shard ids by partition
	owned  []int      // by this node, ascending
	of     *membership
	made   time.Time
}

// awayAfter is how long a node that starts waits for ZooKeeper before it answers without.
const awayAfter = 30 * time.Second

// remembered is what a node keeps of the others in a file, and reads when it starts without ZooKeeper.
type remembered struct {
	Members []string `json:"members"` // addresses of other nodes, ascending
	Held    []held   `json:"held"`
}

// held are the partitions of a content that other nodes hold, by their addresses.
type held struct {
	DB      string           `json:"db"`
	Content content.Content  `json:"content"`
	Nodes   map[string][]int `json:"nodes"`
}

// New returns a Cluster without members. Join connects it.
func New(o Options) *Cluster {
	c := &Cluster{
		o: o, log: o.Logger, changes: make(chan map[string]bool, 1), switched: make(chan struct{}, 1), patience: o.Session.Timeout(), awayAfter: awayAfter,
		versions: make(map[key]*watched),
	}
	c.ctx, c.leave = context.WithCancel(context.Background())
	if !o.Router && o.ShardID != "" {
		c.self.Store(c.member(o.ShardID))
	}
	c.members.Store(newMembership(nil, c.self.Load(), o.Settings, "", time.Now()))
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
func (c *Cluster) Changes() <-chan map[string]bool { return c.changes }

// changed adds a database to those that Changes receives, all of them if db is empty.
func (c *Cluster) changed(db string) {
	dbs := map[string]bool{db: true}
	for {
		select {
		case c.changes <- dbs:
			return
		case before := <-c.changes: // not received yet
			maps.Copy(before, dbs) // not the other way: there may be thousands in it
			dbs = before
		}
	}
}

// Mixed implements version.Cluster.
func (c *Cluster) Mixed() bool {
	return slices.ContainsFunc(c.Members(), func(m Member) bool { return m.Settings == nil })
}

// MayBeUpstream reports whether the node at an address may be of upstream's kind, whose answers do not say which content they are from. A node that
// started without ZooKeeper takes these from members only: what has the address of a node that was remembered may be of another cluster.
func (c *Cluster) MayBeUpstream(addr string) bool {
	return c.recalled.Load() == nil || slices.ContainsFunc(c.Members(), func(m Member) bool { return m.Addr == addr && m.Settings == nil })
}

// Knows implements version.Cluster.
func (c *Cluster) Knows(db string) bool {
	dbs := c.dbs.Load()
	if dbs == nil {
		return false
	}
	_, known := slices.BinarySearchFunc(*dbs, db, func(e zk.Entry, name string) int { return strings.Compare(e.Name, name) })
	return known
}

func (c *Cluster) updateMembers(entries []zk.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing = entries
	c.updateMembership()
}

// updateMembership replaces the membership after a change of the listed nodes or of the rule. c.mu is held.
func (c *Cluster) updateMembership() {
	old := c.members.Load()
	members, malformed := parseMembers(c.listing)
	ms := newMembership(members, c.self.Load(), c.o.Settings, c.rule, time.Now())
	if c.unknownRule != "" {
		ms.problems = append(ms.problems, c.unknownRule)
	}
	ms.logged = append(malformed, ms.problems...)
	ms.listed = old.listed || c.o.Router || slices.ContainsFunc(members, func(m Member) bool { return m.Addr == c.o.Addr })
	same := func(a, b Member) bool {
		return a.ShardID == b.ShardID && a.Addr == b.Addr && a.settings() == b.settings()
	}
	if ms.listed == old.listed && (ms.rule == old.rule || old.rule == "") && slices.EqualFunc(old.all, ms.all, same) {
		ms.since = old.since
	}
	c.members.Store(ms)
	c.logChanges(old, ms)
}

// logChanges logs who has joined and left, and each problem once, and again when it is resolved.
func (c *Cluster) logChanges(old, now *membership) {
	for _, m := range now.all {
		if _, known := old.byAddr[m.Addr]; !known {
			c.log.Info("node has joined", "node", m.Addr, "shard_id", m.ShardID, "nodes", len(now.all))
		}
	}
	for _, m := range old.all {
		if _, there := now.byAddr[m.Addr]; !there {
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

// Assignment returns the rule by which this node assigns partitions, "" until it is known.
func (c *Cluster) Assignment() shard.Assignment { return c.members.Load().rule }

// ZoneOf returns the zone of a member by its address, "" if it has none or there is no such member. It is called for requests.
func (c *Cluster) ZoneOf(addr string) string { return c.members.Load().byAddr[addr].settings().Zone }

// Problems returns the differences in settings that keep the nodes from forming
// one cluster, as sentences.
func (c *Cluster) Problems() []string { return c.members.Load().problems }

// Status returns the status of the session with ZooKeeper.
func (c *Cluster) Status() zk.Status { return c.o.Session.Status() }

// updateView makes the view from what is advertised. c.mu is held.
func (f *following) updateView() { f.view.Store(newView(f.advertisements, f.content, f.listed)) }

// Peers implements version.Following.
func (f *following) Peers(partition int) []string { return f.view.Load().of(partition).peers }

// Replicas implements version.Following.
func (f *following) Replicas(partition int) int { return f.view.Load().of(partition).replicas }
