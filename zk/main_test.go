//go:build integration

package zk

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"sequins/test/expect"
	"sequins/test/harness"
)

// TestMain lets many tests run side by side, however few cores there are: most of what they do is wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	const toxiproxy = "github.com/Shopify/toxiproxy/v2" // what it starts does not always end with it
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).read"),
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).write"),
		goleak.IgnoreAnyFunction(toxiproxy+"/toxics.(*ToxicStub).Run"))
}

// TestZooKeeper runs all tests that need a server, on real ones that share one Java process.
func TestZooKeeper(t *testing.T) {
	t.Parallel()
	h := harness.Start(t)
	t.Run("servers", func(t *testing.T) { // returns when all of them have ended
		for name, test := range map[string]func(*testing.T, *harness.Harness){
			"publish and watch":     testPublishAndWatch,
			"many partitions":       testManyPartitions,
			"replaced data":         testReplacedData,
			"prune and publish":     testPruneAndPublish,
			"deleted by others":     testDeletedByOthers,
			"claim":                 testClaim,
			"too many":              testTooMany,
			"connection lost":       testConnectionLost,
			"silence":               testSilence,
			"expired":               testExpired,
			"expired while cut off": testExpiredWhileCutOff,
			"killed and restarted":  testKilledAndRestarted,
			"rolling restart":       testRollingRestart,
			"outage":                testOutage,
			"restored to nothing":   testRestoredToNothing,
			"digest":                testDigest,
			"foreign znodes":        testForeignZnodes,
			"directory comes, goes": testDirectoryComesAndGoes,
			"damped":                testDamped,
			"data of many":          testDataOfMany,
			"current":               testCurrent,
			"stopped":               testStopped,
			"closed":                testClosed,
			"random faults":         testRandomFaults,
			"settling after expiry": testSettling,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, h)
			})
		}
	})
}

// patience bounds waiting for events that must occur, on a busy machine.
const patience = time.Minute

// long is a session timeout that a busy machine does not exceed: 20 ticks, the servers' maximum. short is the minimum,
// 2 ticks.
const (
	long = 20 * tick
	tick = time.Second
)

// ensemble is a real ZooKeeper ensemble.
type ensemble struct {
	h       *harness.Harness
	id      string
	servers []string
	secure  []string // the same servers' TLS ports
}

func startEnsemble(t *testing.T, h *harness.Harness, options string) *ensemble {
	t.Helper()
	id := "zk-" + strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == ',' {
			return '-'
		}
		return r
	}, path.Base(t.Name()))
	r := h.Do(t, fmt.Sprintf("zk start id=%s tick=%d %s", id, tick.Milliseconds(), options))
	t.Cleanup(func() { h.Do(t, "zk stop id="+id) })
	return &ensemble{h: h, id: id, servers: strings.Split(r["connect"], ","), secure: strings.Split(r["secure"], ",")}
}

// do runs a command on one of the servers.
func (e *ensemble) do(t *testing.T, command string, server int) {
	t.Helper()
	e.h.Do(t, fmt.Sprintf("zk %s id=%s i=%d", command, e.id, server))
}

func (e *ensemble) options(t *testing.T) Options {
	return Options{
		Servers: e.servers, ConnectTimeout: time.Second, SessionTimeout: long,
		Root: "/sequins/v1", Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// session returns a session that is closed with the test.
func session(t *testing.T, o Options, tune ...func(s *Session)) *Session {
	t.Helper()
	o.Logger = cmp.Or(o.Logger, slog.Default())
	s := newSession(o)
	for _, f := range tune {
		f(s)
	}
	s.start()
	t.Cleanup(func() { s.Close() })
	return s
}

func flush(t *testing.T, s *Session) {
	t.Helper()
	expect.Eventually(t, "ZooKeeper has what is desired", func() bool { st := s.Status(); return st.State == Connected && st.Pending == 0 })
}

// sessionID returns the id of ZooKeeper's session.
func sessionID(s *Session) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

func awaitSeen(t *testing.T, c *view) {
	t.Helper()
	expect.Eventually(t, c.dir+" is listed", c.Current)
}

// view is a view whose entries tests can see.
type view struct {
	*Children
	entries atomic.Pointer[[]Entry]
}

// watch is Session.Watch. also is called after the entries can be seen.
func watch(s *Session, dir string, also ...func([]Entry)) *view {
	v := &view{}
	v.Children = s.Watch(dir, func(entries []Entry) {
		v.entries.Store(&entries)
		for _, update := range also {
			update(entries)
		}
	})
	return v
}

// Entries returns the last known children; none before they are known.
func (v *view) Entries() []Entry {
	if entries := v.entries.Load(); entries != nil {
		return *entries
	}
	return nil
}

// changes counts how often a view has changed.
type changes struct{ atomic.Int64 }

func (c *changes) count([]Entry) { c.Add(1) }

// awaitNames waits until a view has the given names.
func awaitNames(t *testing.T, c *view, want ...string) {
	t.Helper()
	slices.Sort(want)
	expect.Eventually(t, fmt.Sprintf("%s has %q", c.dir, want), func() bool { return slices.Equal(names(c), want) })
}

func names(c *view) (names []string) {
	for _, e := range c.Entries() {
		names = append(names, e.Name)
	}
	return names
}

// observer reads ZooKeeper through the library alone.
type observer struct{ *zk.Conn }

func observe(t *testing.T, servers []string) observer {
	t.Helper()
	c, events, err := zk.Connect(servers, long, zk.WithLogger(discard{}))
	expect.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	return observer{c}
}

type discard struct{}

func (discard) Printf(string, ...any) {}

// tree returns the data and the sessions of all ephemerals below a path, by path.
func (o observer) tree(t *testing.T, root string) (data map[string]string, owners map[string]int64) {
	t.Helper()
	data, owners = map[string]string{}, map[string]int64{}
	var walk func(string)
	walk = func(p string) {
		b, stat, err := o.Get(p)
		if errors.Is(err, zk.ErrNoNode) { // it was just deleted
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if stat.EphemeralOwner != 0 {
			data[p], owners[p] = string(b), stat.EphemeralOwner
			return
		}
		children, _, err := o.Children(p)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			t.Fatalf("%s: %v", p, err)
		}
		for _, child := range children {
			walk(p + "/" + child)
		}
	}
	walk(root)
	return data, owners
}

// expect fails the test unless exactly these ephemerals exist and belong to the session.
func (o observer) expect(t *testing.T, s *Session, want map[string]string) {
	t.Helper()
	data, owners := o.tree(t, "/sequins/v1")
	got := map[string]string{}
	for p, d := range data {
		got[strings.TrimPrefix(p, "/sequins/v1/")] = d
	}
	if !maps.Equal(got, want) {
		t.Errorf("published is %q, want %q", got, want)
	}
	for p, owner := range owners {
		if owner != sessionID(s) {
			t.Errorf("%s belongs to session %#x, not to %#x", p, owner, sessionID(s))
		}
	}
}

// make creates a persistent znode and its parents.
func (o observer) make(t *testing.T, p string, data []byte) {
	t.Helper()
	for i := 1; i < len(p); i++ {
		if p[i] == '/' {
			o.Create(p[:i], nil, 0, zk.WorldACL(zk.PermAll)) // it may exist
		}
	}
	if _, err := o.Create(p, data, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("%s: %v", p, err)
	}
}
