//go:build integration

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/go-zookeeper/zk"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// sessionTimeout is that of every node. Servers tick every 500 ms and keep no
// session for less than two ticks.
const sessionTimeout = 2 * time.Second

// A zookeeper is an ensemble of real servers.
type zookeeper struct {
	h       *harness.Harness
	servers []string // host:port
	up      []bool
}

// startZookeeper runs servers until the test ends, which may kill them and end their sessions.
func startZookeeper(t testing.TB, servers int) *zookeeper {
	t.Helper()
	return newZookeeper(t, harness.Start(t), servers)
}

func newZookeeper(t testing.TB, h *harness.Harness, servers int) *zookeeper {
	t.Helper()
	z := &zookeeper{h: h, up: make([]bool, servers)}
	z.servers = strings.Split(h.Do(t, fmt.Sprintf("zk start n=%d", servers))["connect"], ",")
	for i := range z.up {
		z.up[i] = true
	}
	return z
}

// shared is the server of sharedZookeeper. It runs until closeShared.
var shared struct {
	mu   sync.Mutex
	root string // directory of its files
	z    *zookeeper
}

// sharedZookeeper returns the one server of the tests that never disturb it. Each of their clusters has a name of its own there.
func sharedZookeeper(t testing.TB) *zookeeper {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.z != nil {
		return shared.z
	}
	var h *harness.Harness
	root, err := os.MkdirTemp("", "sequins-zookeeper-")
	if err == nil {
		h, err = harness.Open(root)
	}
	if err != nil {
		t.Fatal(errors.Join(err, os.RemoveAll(root)))
	}
	shared.root, shared.z = root, newZookeeper(t, h, 1)
	return shared.z
}

// closeShared ends the server that the tests have shared.
func closeShared() error {
	if shared.z == nil {
		return nil
	}
	return errors.Join(shared.z.h.Close(), os.RemoveAll(shared.root))
}

func (z *zookeeper) kill(t testing.TB, i int) {
	t.Helper()
	if z.up[i] {
		z.h.Do(t, fmt.Sprintf("zk kill i=%d", i))
	}
	z.up[i] = false
}

func (z *zookeeper) restart(t testing.TB, i int) {
	t.Helper()
	if !z.up[i] {
		z.h.Do(t, fmt.Sprintf("zk restart i=%d", i))
	}
	z.up[i] = true
}

func (z *zookeeper) killAll(t testing.TB) {
	t.Helper()
	for i := range z.up {
		z.kill(t, i)
	}
}

func (z *zookeeper) restartAll(t testing.TB) {
	t.Helper()
	for i := range z.up {
		z.restart(t, i)
	}
}

// expire ends all sessions.
func (z *zookeeper) expire(t testing.TB) {
	t.Helper()
	z.h.Do(t, "zk expire")
}

// A look is a client of the tests' own, that goes to the servers directly.
type look struct{ conn *zk.Conn }

type silent struct{}

func (silent) Printf(string, ...any) {}

func (z *zookeeper) look(t testing.TB) *look {
	t.Helper()
	conn, _, err := zk.Connect(z.servers, 5*time.Second, zk.WithLogger(silent{}))
	expect.NoError(t, err)
	t.Cleanup(conn.Close)
	return &look{conn}
}

// owned lists the ephemeral znodes below a directory, and the session that owns
// each; their paths are relative to it. A directory that does not exist is empty.
func (l *look) owned(t testing.TB, root string) (owners map[string]int64) {
	t.Helper()
	process.Eventually(t, "ZooKeeper lists "+root, func() bool {
		owners = map[string]int64{}
		return l.walk(root, "", owners) == nil
	})
	return owners
}

func (l *look) walk(root, below string, owners map[string]int64) error {
	children, stat, err := l.conn.Children(path.Join(root, below))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if stat.EphemeralOwner != 0 {
		owners[below] = stat.EphemeralOwner
	}
	for _, c := range children {
		if err := l.walk(root, path.Join(below, c), owners); err != nil {
			return err
		}
	}
	return nil
}

// names lists a directory, all of it as it is at one moment.
func (l *look) names(t testing.TB, dir string) (names []string) {
	t.Helper()
	process.Eventually(t, "ZooKeeper lists "+dir, func() bool {
		var err error
		names, _, err = l.conn.Children(dir)
		return err == nil || errors.Is(err, zk.ErrNoNode)
	})
	return names
}

// A link is the way of one node to ZooKeeper.
type link struct {
	proxies []*toxiproxy.Proxy // one for each server
}

func newLink(t testing.TB, z *zookeeper) *link {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some of it uses the global logger
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	l := &link{}
	for _, s := range z.servers {
		p := toxiproxy.NewProxy(server, s, zookeeperIP+":0", s)
		expect.NoError(t, p.Start())
		t.Cleanup(p.Stop)
		l.proxies = append(l.proxies, p)
	}
	return l
}

// addresses are what the node has in its configuration.
func (l *link) addresses() []string {
	var all []string
	for _, p := range l.proxies {
		all = append(all, p.Listen)
	}
	return all
}

// refuse closes all connections and lets none in, until allow.
func (l *link) refuse() {
	for _, p := range l.proxies {
		p.Stop()
	}
}

func (l *link) allow(t testing.TB) {
	t.Helper()
	for _, p := range l.proxies {
		if err := p.Start(); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
			t.Fatal(err)
		}
	}
}

// hold leaves all connections open, lets more in, and nothing through, until
// release, which ends them.
func (l *link) hold(t testing.TB) {
	t.Helper()
	for _, p := range l.proxies {
		for _, stream := range []string{"upstream", "downstream"} {
			toxic := fmt.Sprintf(`{"name":%q,"type":"timeout","stream":%q,"attributes":{"timeout":0}}`, stream, stream)
			if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (l *link) release() {
	for _, p := range l.proxies {
		p.Toxics.ResetToxics(context.Background())
	}
}

// A link can be cut in both ways and mended.
func TestLink(t *testing.T) {
	t.Parallel()
	z := startZookeeper(t, 3)
	l := newLink(t, z)
	conn, _, err := zk.Connect(l.addresses(), time.Second, zk.WithLogger(silent{}))
	expect.NoError(t, err)
	defer conn.Close()
	connected := func() bool { return conn.State() == zk.StateHasSession }
	works := func() {
		t.Helper()
		process.Eventually(t, "the link works", func() bool {
			_, _, err := conn.Get("/")
			return err == nil
		})
	}
	works()
	l.refuse()
	process.Eventually(t, "the link is refused", func() bool { return !connected() })
	l.allow(t)
	works()
	l.hold(t)
	process.Eventually(t, "the link is silent", func() bool { return !connected() })
	l.release()
	works()
	z.kill(t, 0)
	works()
	z.killAll(t)
	process.Eventually(t, "there is no ZooKeeper", func() bool { return !connected() })
	z.restartAll(t)
	works()
	z.look(t).owned(t, "/")
}
