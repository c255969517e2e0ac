//go:build integration

package zk

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/harness"
	"sequins/test/zktest"
	"sequins/zk/internal/wire"
)

// expire ends the ZooKeeper session of s as if it had timed out.
func expire(t *testing.T, e *ensemble, s *Session) {
	t.Helper()
	before := s.Status().Sessions
	expect.Eventually(t, "the session is found", func() bool {
		_, err := e.h.Try(fmt.Sprintf("zk expire session=%#x", sessionID(s)))
		return err == nil
	})
	expect.Eventually(t, "there is another session", func() bool { return s.Status().Sessions > before && s.Status().State == Connected })
}

// throughProxy puts a proxy in front of the ensemble's first server.
func throughProxy(t *testing.T, e *ensemble) (*gateway.Proxy, Options) {
	t.Helper()
	proxy := gateway.NewProxy(t, e.servers[0])
	o := e.options(t)
	o.Servers = []string{proxy.Addr}
	return proxy, o
}

// sessionThatCanBeKilled returns a session, and a function that makes it look like a killed process to the ensemble.
func sessionThatCanBeKilled(t *testing.T, e *ensemble, timeout time.Duration) (s *Session, kill func()) {
	t.Helper()
	proxy, o := throughProxy(t, e)
	o.SessionTimeout = timeout
	return session(t, o), proxy.Cut
}

// A lost connection keeps the session and its watches.
func testConnectionLost(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	proxy, o := throughProxy(t, e)
	a, b := session(t, o), session(t, e.options(t))
	path := NodePath("a", "host-a:1")
	a.Publish(path, []byte("x"))
	nodes := watch(a, NodesDir)
	flush(t, a)
	awaitNames(t, nodes, "a@host-a:1")
	for range 5 {
		proxy.Cut()
		expect.Eventually(t, "the loss is noticed", func() bool { return a.Status().State == Suspended })
		b.Publish(NodePath("b", "host-b:1"), nil)
		a.Publish(NodePath("c", "host-c:1"), nil)
		flush(t, b)
		if !slices.Equal(names(nodes), []string{"a@host-a:1"}) {
			t.Errorf("without a connection: %q", names(nodes))
		}
		proxy.Mend(t)
		awaitNames(t, nodes, "a@host-a:1", "b@host-b:1", "c@host-c:1")
		b.Unpublish(NodePath("b", "host-b:1"))
		a.Unpublish(NodePath("c", "host-c:1"))
		awaitNames(t, nodes, "a@host-a:1")
	}
	if st := a.Status(); st.Sessions != 1 || !strings.Contains(st.LastError, "connection") {
		t.Errorf("status %+v", st)
	}
	observe(t, e.servers).expect(t, a, map[string]string{path: "x"})
}

// A silent connection is treated as lost, and so is one that is accepted and then silent.
func testSilence(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	proxy, o := throughProxy(t, e)
	o.SessionTimeout = 4 * time.Second
	a := session(t, o)
	a.Publish(NodePath("a", "host-a:1"), nil)
	flush(t, a)
	proxy.Treat(t, `{"name":"up","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`)
	proxy.Treat(t, `{"name":"down","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`)
	expect.Eventually(t, "the silence is noticed", func() bool { return a.Status().State == Suspended })
	expect.Eventually(t, "another connection is tried, and given up", func() bool { return strings.Contains(a.Status().LastError, "handshake") })
	proxy.Heal(t)
	expect.Eventually(t, "it is connected again", func() bool { return a.Status().State == Connected })
	flush(t, a)
	observe(t, e.servers).expect(t, a, map[string]string{NodePath("a", "host-a:1"): ""})
}

// After a session has expired, everything is published again and watches continue.
func testExpired(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	want := map[string]string{}
	for p := range 10 {
		path := PartitionPath("db", "1", p, "host-a:1")
		a.Publish(path, []byte("x"))
		want[path] = "x"
	}
	nodes := watch(a, NodesDir)
	awaitSeen(t, nodes)
	flush(t, a)
	for i := range 5 {
		expire(t, e, a)
		b.Publish(NodePath("b", "host-b:1"), []byte{byte(i)})
		flush(t, b)
		flush(t, a)
		expect.Eventually(t, "a sees what changes", func() bool {
			return len(nodes.Entries()) == 1 && string(nodes.Entries()[0].Data) == string([]byte{byte(i)})
		})
	}
	b.Close()
	awaitNames(t, nodes)
	observe(t, e.servers).expect(t, a, want)
}

// A session that expires while all servers are unreachable keeps its last view, and is replaced when a server is
// reachable.
func testExpiredWhileCutOff(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, kill := sessionThatCanBeKilled(t, e, 3*time.Second)
	b := session(t, e.options(t))
	theirs := watch(b, NodesDir)
	path := NodePath("a", "host-a:1")
	a.Publish(path, []byte("x"))
	b.Publish(NodePath("b", "host-b:1"), nil)
	nodes := watch(a, NodesDir)
	awaitNames(t, nodes, "a@host-a:1", "b@host-b:1")
	awaitNames(t, theirs, "a@host-a:1", "b@host-b:1")
	kill()
	awaitNames(t, theirs, "b@host-b:1")
	if got := names(nodes); len(got) != 2 || a.Status().State != Suspended {
		t.Errorf("view without a connection: %q, %+v", got, a.Status())
	}
	a.Unpublish(path)
	a.Publish(NodePath("a", "host-a:2"), nil)
	if st := a.Status(); st.Pending != 2 {
		t.Errorf("cut off: %+v", st)
	}
}

// Servers are restarted one after the other, repeatedly: no session is lost, and no view changes.
func testRollingRestart(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "n=3")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	var seen changes
	nodes := watch(b, NodesDir, seen.count)
	a.Publish(NodePath("a", "host-a:1"), nil)
	b.Publish(NodePath("b", "host-b:1"), nil)
	awaitNames(t, nodes, "a@host-a:1", "b@host-b:1")
	awaitSeen(t, nodes)
	before := seen.Load()
	for i := range 6 {
		e.do(t, "kill", i%3)
		flush(t, a)
		e.do(t, "restart", i%3)
		flush(t, a)
		flush(t, b)
	}
	if a.Status().Sessions != 1 || b.Status().Sessions != 1 || seen.Load() != before {
		t.Errorf("%+v, %+v, changes: %d", a.Status(), b.Status(), seen.Load()-before)
	}
	a.Publish(NodePath("a", "host-a:1"), []byte("x"))
	expect.Eventually(t, "watches go on", func() bool { return string(nodes.Entries()[0].Data) == "x" })
}

// ZooKeeper is down for longer than the session timeout. When it returns, everything is published again at once.
func testOutage(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "n=3")
	o := e.options(t)
	o.SessionTimeout = 2 * time.Second
	a, b := session(t, o), session(t, o)
	want := map[string]string{}
	for p := range 100 {
		path := PartitionPath("db", "1", p, "host-a:1")
		a.Publish(path, nil)
		want[path] = ""
	}
	dir := watch(b, VersionDir("db", "1"))
	flush(t, a)
	expect.Eventually(t, "all are seen", func() bool { return len(dir.Entries()) == 100 })
	for i := range 3 {
		e.do(t, "kill", i)
	}
	expect.Eventually(t, "the outage lasts", func() bool {
		st := a.Status()
		return st.State == Suspended && time.Since(st.Since) > 2*o.SessionTimeout
	})
	a.Publish(PartitionPath("db", "1", 100, "host-a:1"), nil)
	want[PartitionPath("db", "1", 100, "host-a:1")] = ""
	if len(dir.Entries()) != 100 {
		t.Errorf("in the outage %d are seen", len(dir.Entries()))
	}
	for i := range 3 {
		e.do(t, "restart", i)
	}
	again := observe(t, e.servers)
	expect.Eventually(t, "there is a leader again", func() bool { _, err := again.Sync("/"); return err == nil })
	start := time.Now()
	flush(t, a)
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("published again after %v", d)
	} else {
		t.Logf("published again after %v, in session %d", d, a.Status().Sessions)
	}
	expect.Eventually(t, "the new one is seen", func() bool { return len(dir.Entries()) == 101 })
	again.expect(t, a, want)
}

// An ensemble that has lost its data has an older zxid than the client has seen. Its servers reject the client until it
// begins a new session.
func testRestoredToNothing(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a := session(t, e.options(t), func(s *Session) { s.abandon = time.Second })
	path := NodePath("a", "host-a:1")
	a.Publish(path, []byte("x"))
	nodes := watch(a, NodesDir)
	awaitNames(t, nodes, "a@host-a:1")
	for range 100 { // so that the ensemble does not reach the old zxid
		a.Publish(path, []byte("y"))
		a.Publish(path, []byte("x"))
		flush(t, a)
	}
	e.do(t, "kill", 0)
	e.do(t, "wipe", 0)
	e.do(t, "restart", 0)
	expect.Eventually(t, "there is another session", func() bool { return a.Status().Sessions == 2 })
	flush(t, a)
	awaitNames(t, nodes, "a@host-a:1")
	observe(t, e.servers).expect(t, a, map[string]string{path: "x"})
}

// Sessions of other nodes that end together with ours return: views show no change meanwhile.
func testSettling(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a := session(t, e.options(t), func(s *Session) { s.settle = 2 * time.Second })
	b, c := session(t, e.options(t)), session(t, e.options(t))
	a.Publish(NodePath("a", "host-a:1"), nil)
	b.Publish(NodePath("b", "host-b:1"), nil)
	c.Publish(NodePath("c", "host-c:1"), nil)
	var seen changes
	nodes := watch(a, NodesDir, seen.count)
	awaitNames(t, nodes, "a@host-a:1", "b@host-b:1", "c@host-c:1")
	awaitSeen(t, nodes)
	before, began := seen.Load(), time.Now()
	expire(t, e, a)
	c.Close() // it does not return; before the new session of a, a could see that
	expire(t, e, b)
	flush(t, b)
	if seen.Load() != before && time.Since(began) < time.Second {
		t.Errorf("the view changed: %q", names(nodes))
	}
	awaitNames(t, nodes, "a@host-a:1", "b@host-b:1")
}

// No method blocks on an unreachable server, and Close returns quickly.
func testClosed(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a := session(t, e.options(t))
	a.Publish(NodePath("a", "host-a:1"), nil)
	flush(t, a)
	o := observe(t, e.servers)
	closeInTime(t, a)
	if data, _ := o.tree(t, "/sequins/v1"); len(data) != 0 {
		t.Errorf("left: %v", slices.Collect(maps.Keys(data)))
	}
	if st := a.Status(); st.State != Closed || st.Published+st.Pending > 0 {
		t.Errorf("%+v", st)
	}
	a.Publish("x", nil) // no effect
	if c := watch(a, "x"); len(c.Entries()) != 0 {
		t.Error("entries")
	}
	closeInTime(t, a)

	lost, kill := sessionThatCanBeKilled(t, e, 3*time.Second)
	lost.Publish(NodePath("a", "host-a:1"), nil)
	flush(t, lost)
	kill()
	closeInTime(t, lost)
}

func closeInTime(t *testing.T, s *Session) {
	t.Helper()
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > long/2 {
		t.Errorf("closing took %v", d)
	}
}

func TestNoServer(t *testing.T) {
	o := Options{Servers: []string{"127.0.0.1:1", "no-such-host.invalid:1"}, ConnectTimeout: time.Second, SessionTimeout: long, Root: "/r"}
	s := session(t, o)
	s.Publish("a/b", nil)
	c := watch(s, "a")
	expect.Eventually(t, "servers are tried", func() bool { return strings.Contains(s.Status().LastError, "failed to connect to") })
	if st := s.Status(); st.State != Connecting || st.Pending != 1 || st.Sessions != 0 {
		t.Errorf("%+v", st)
	}
	c.Stop()
	closeInTime(t, s)
}

// Close does not wait for a server that has begun a session and is then silent.
func TestCloseWhileAuthenticating(t *testing.T) {
	addr, asked := serveThenSilence(t, zktest.Handshake(1, 60_000))
	s := session(t, Options{Servers: []string{addr}, ConnectTimeout: time.Second, SessionTimeout: time.Minute, Root: "/r", Auth: "a:b"})
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatalf("no credentials came; %+v", s.Status())
	}
	closeInTime(t, s)
}

// A connection that is lost and restored repeatedly logs few lines, and the last of them is correct.
func TestFlapping(t *testing.T) {
	var log expect.Output
	s := &Session{o: Options{Logger: log.Logger()}, changed: make(chan struct{}), lossLogged: true}
	for range 1000 {
		s.setConnected(new(wire.Conn), "host:2181")
		s.setState(Suspended)
		s.setState(Connecting)
	}
	s.setConnected(new(wire.Conn), "host:2181")
	lost, found := count(&log, "connection lost"), count(&log, "zookeeper: connected")
	if lost != logFirst || found != logFirst+1 {
		t.Errorf("%d times lost, %d times connected", lost, found)
	}
	if lines := strings.Split(strings.TrimSpace(log.String()), "\n"); !strings.Contains(lines[len(lines)-1], "connected") {
		t.Errorf("the last line: %s", lines[len(lines)-1])
	}
}
