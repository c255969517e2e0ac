//go:build integration

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// The times of the nodes' configuration: long enough for a busy machine, short
// enough for a test.
const (
	proxyTimeout = 3 * time.Second
	stageTimeout = 400 * time.Millisecond
)

// settings are what a test says of its cluster.
type settings struct {
	data        dataset
	members     int
	replication int
	extra       string   // further lines of sequins.conf, for all members
	sharding    []string // further lines of [sharding], for all members
	sections    string   // further sections, for all members
}

// A cluster is a number of members with one source and one ZooKeeper.
type cluster struct {
	settings
	zk      *zookeeper
	name    string // in ZooKeeper
	source  string
	members []*member
}

// A member is a node with a host of its own, which may be up or not.
type member struct {
	c        *cluster
	name     string // also its shard id
	host     *host
	link     *link
	sharding []string // further lines of [sharding]
	config   process.Config
	node     *process.Node // the process that runs, or ran last
	up       bool
	paused   bool
	cut      bool // off from others
	starts   int
}

var clusters atomic.Int64

// newCluster describes a cluster whose source is empty. Nothing runs yet.
func newCluster(t testing.TB, z *zookeeper, s settings) *cluster {
	t.Helper()
	c := &cluster{settings: s, zk: z, name: fmt.Sprintf("cluster%d", clusters.Add(1)), source: filepath.Join(t.TempDir(), "source")}
	expect.NoError(t, os.MkdirAll(filepath.Join(c.source, db), 0o755))
	for range s.members {
		c.add(t)
	}
	return c
}

// add describes one more member, with further lines of [sharding].
func (c *cluster) add(t testing.TB, sharding ...string) *member {
	t.Helper()
	m := &member{c: c, name: fmt.Sprintf("n%02d", len(c.members)+1), host: newHost(t), link: newLink(t, c.zk), sharding: sharding}
	m.config = process.Config{
		Source: c.source, Store: filepath.Join(t.TempDir(), "store"),
		Addr: m.host.ip + ":9599", Debug: m.host.ip + ":9598",
		Extra: "refresh_period = \"300ms\"\nrequire_success_file = true\n" + c.extra, Prefix: m.host.prefix(),
	}
	c.members = append(c.members, m)
	return m
}

// sections are the parts of the configuration that make a node a member. A line
// of the member's own stands in for one of the cluster's or of the defaults.
func (m *member) sections() string {
	keys := map[string]string{}
	for _, line := range slices.Concat([]string{
		"enabled = true",
		fmt.Sprintf("cluster_name = %q", m.c.name),
		fmt.Sprintf("advertised_hostname = %q", m.host.ip),
		fmt.Sprintf("shard_id = %q", m.name),
		`assignment = "round_robin"`, // see roundRobin
		fmt.Sprintf("replication = %d", m.c.replication),
		fmt.Sprintf("min_replication = %d", m.c.replication),
		`time_to_converge = "500ms"`,
		fmt.Sprintf("min_nodes = %d", m.c.settings.members), // all that start together
		fmt.Sprintf("proxy_timeout = %q", proxyTimeout),
		fmt.Sprintf("proxy_stage_timeout = %q", stageTimeout),
	}, m.c.sharding, m.sharding) {
		key, value, _ := strings.Cut(line, " = ")
		keys[key] = value
	}
	var b strings.Builder
	b.WriteString("[sharding]\n")
	for key, value := range keys {
		fmt.Fprintf(&b, "%s = %s\n", key, value)
	}
	fmt.Fprintf(&b, "[redis]\nbind = \"%s:%s\"\n", m.host.ip, redisPort)
	fmt.Fprintf(&b, "[zk]\nservers = [\"%s\"]\nsession_timeout = %q\n", strings.Join(m.link.addresses(), `", "`), sessionTimeout)
	return b.String() + m.c.settings.sections
}

// addr is what the member is called by the others.
func (m *member) addr() string { return m.config.Addr }

// start starts the process and waits until it answers /livez.
func (m *member) start(t testing.TB) {
	t.Helper()
	m.launch(t)
	m.waitLive(t)
}

func (m *member) waitLive(t testing.TB) {
	t.Helper()
	m.node.WaitFor(t, m.name+" answers /livez", func() bool {
		r, err := m.node.TryGet("/livez")
		return err == nil && r.Code == 200
	})
}

// launch starts the process and does not wait for it.
func (m *member) launch(t testing.TB) {
	t.Helper()
	m.config.Sections = m.sections()
	m.node = process.Launch(t, m.config)
	m.up = true
	m.starts++
}

// kill ends the process as a power cut would.
func (m *member) kill() {
	m.up, m.paused = false, false
	m.node.Kill()
}

// terminate ends the process in order.
func (m *member) terminate(t testing.TB) {
	t.Helper()
	if code := m.node.Stop(t); code != 0 {
		t.Errorf("%s ends with exit code %d after SIGTERM", m.name, code)
	}
	m.up = false
}

func (m *member) pause(t testing.TB) {
	t.Helper()
	m.paused = true
	m.node.Signal(t, syscall.SIGSTOP)
}

func (m *member) resume(t testing.TB) {
	t.Helper()
	m.node.Signal(t, syscall.SIGCONT)
	m.paused = false
}

// startAll starts all members at the same time, as a deployment does, and waits
// until they are ready.
func (c *cluster) startAll(t testing.TB) {
	t.Helper()
	startTogether(t, c.members)
}

func startTogether(t testing.TB, members []*member) {
	t.Helper()
	for _, m := range members {
		m.launch(t)
	}
	for _, m := range members {
		m.waitReady(t)
	}
}

func (m *member) waitReady(t testing.TB) {
	t.Helper()
	said := ""
	defer func() {
		if t.Failed() {
			t.Errorf("%s is not ready: %s", m.name, said)
		}
	}()
	m.node.WaitFor(t, m.name+" is ready", func() bool {
		r, err := m.node.TryGet("/readyz")
		if err != nil {
			said = err.Error()
			return false
		}
		said = string(r.Body)
		return r.Code == 200
	})
}

// publish puts a version into the source.
func (c *cluster) publish(t testing.TB, version string) {
	t.Helper()
	c.data.publish(t, c.source, version)
}

// begin starts all members with a version in the source, and waits until they serve it.
func (c *cluster) begin(t testing.TB, version string) {
	t.Helper()
	c.publish(t, version)
	c.startAll(t)
	c.waitServed(t, version)
}

// live are the members that run.
func (c *cluster) live() []*member {
	return slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return !m.up || m.paused })
}

// waitServed waits until all members that run serve a version.
func (c *cluster) waitServed(t testing.TB, version string) {
	t.Helper()
	for _, m := range c.live() {
		m.node.WaitCurrent(t, db, version)
	}
}

// current is the version that a member serves, "" for none.
func (m *member) current(t testing.TB) string {
	t.Helper()
	for version, v := range m.node.Health(t)[db] {
		if v.Current {
			return version
		}
	}
	return ""
}

// holds are the partitions of a version that a member has.
func (m *member) holds(t testing.TB, version string) []int {
	t.Helper()
	v := m.node.Health(t)[db][version]
	if v.State == "ERROR" {
		return nil
	}
	return v.Partitions
}

// waitHeld waits until a member that runs has just these partitions of a version.
func (m *member) waitHeld(t testing.TB, version string, want []int) {
	t.Helper()
	var got []int
	defer func() {
		if t.Failed() {
			t.Logf("%s has %v of %s, want %v", m.name, got, version, want)
		}
	}()
	m.node.WaitFor(t, fmt.Sprintf("%s has its partitions of %s", m.name, version), func() bool {
		got = m.holds(t, version)
		return slices.Equal(got, want)
	})
}

// advertised are the addresses that ZooKeeper has for each partition of a version.
func (c *cluster) advertised(t testing.TB, l *look, version string) map[int][]string {
	t.Helper()
	found := map[int][]string{}
	for _, name := range l.names(t, fmt.Sprintf("/%s/v1/partitions/%s/%s", c.name, db, version)) {
		number, addr, _ := strings.Cut(name, "@")
		var p int
		if _, err := fmt.Sscanf(number, "%05d", &p); err != nil {
			t.Fatalf("znode %q", name)
		}
		found[p] = append(found[p], addr)
	}
	return found
}

// waitWhole waits until every partition of a version is advertised by as many
// members as it should be, all of which run.
func (c *cluster) waitWhole(t testing.TB, l *look, version string) {
	t.Helper()
	process.Eventually(t, version+" is whole", seldom(func() bool { return c.lacks(t, l, version) == "" }))
}

// seldom returns a condition that looks ten times a second at most, for those that ask all members.
func seldom(condition func() bool) func() bool {
	var looked time.Time
	return func() bool {
		if time.Since(looked) < time.Second/10 {
			return false
		}
		defer func() { looked = time.Now() }()
		return condition()
	}
}

// lacks says what a version lacks for every partition to be advertised by as many
// members as it should be that run and have it; "" if nothing.
func (c *cluster) lacks(t testing.TB, l *look, version string) string {
	t.Helper()
	replicas := map[int]int{}
	addresses := c.advertised(t, l, version)
	for _, m := range c.live() {
		for _, p := range m.holds(t, version) {
			if slices.Contains(addresses[p], m.addr()) {
				replicas[p]++
			}
		}
	}
	for p := range c.data.partitions {
		if replicas[p] < c.replication {
			return fmt.Sprintf("partition %d of %s has %d replicas; advertised by %v", p, version, replicas[p], addresses[p])
		}
	}
	return ""
}
