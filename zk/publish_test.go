//go:build integration

package zk

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"sequins/test/expect"
	"sequins/test/harness"
)

// One session sees what another publishes, with data, and its changes.
func testPublishAndWatch(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	var seen changes
	nodes := watch(b, NodesDir, seen.count)
	awaitSeen(t, nodes) // although the directory does not exist
	if len(nodes.Entries()) != 0 {
		t.Errorf("entries %v", nodes.Entries())
	}
	a.Publish(NodePath("a", "host-a:1"), []byte("one"))
	a.Publish(NodePath("a", "host-a:1"), []byte("one"))
	b.Publish(NodePath("b", "host-b:1"), nil)
	flush(t, a)
	flush(t, b)
	awaitNames(t, nodes, "a@host-a:1", "b@host-b:1")
	if got := string(nodes.Entries()[0].Data); got != "one" {
		t.Errorf("data %q", got)
	}
	if st := a.Status(); st.State != Connected || st.Sessions != 1 || st.Published != 1 || st.Pending != 0 {
		t.Errorf("status %+v", st)
	}
	b.Unpublish(NodePath("b", "host-b:1"))
	b.Unpublish("nothing/of/the/kind")
	awaitNames(t, nodes, "a@host-a:1")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	awaitNames(t, nodes)
	if n := seen.Load(); n < 4 { // the first listing, two nodes, one, none
		t.Errorf("%d changes were announced", n)
	}
}

// 10,000 partitions take few requests, also when they are published again after a lost session, and when they are
// deleted.
func testManyPartitions(t *testing.T, h *harness.Harness) {
	const n = 10_000
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	dir := watch(b, VersionDir("db", "1"))
	phase := func(what string, want int) {
		t.Helper()
		start := time.Now()
		flush(t, a)
		t.Logf("%s: %v", what, time.Since(start))
		expect.Eventually(t, what, func() bool { return len(dir.Entries()) == want })
	}
	for p := range n {
		a.Publish(PartitionPath("db", "1", p, "host-a:1"), nil)
	}
	phase("published", n)
	expire(t, e, a)
	phase("published again", n)
	for p := range n {
		a.Unpublish(PartitionPath("db", "1", p, "host-a:1"))
	}
	phase("taken back", 0)
}

// Data can be replaced repeatedly, also while it is being written; the last value remains.
func testReplacedData(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	nodes := watch(b, NodesDir)
	path := NodePath("a", "host-a:1")
	for i := range byte(100) {
		a.Publish(path, []byte{i})
		if i%10 == 0 {
			flush(t, a)
		}
		if i%7 == 0 {
			a.Unpublish(path)
		}
	}
	flush(t, a)
	observe(t, e.servers).expect(t, a, map[string]string{path: "\x63"})
	expect.Eventually(t, "the last is seen", func() bool { return len(nodes.Entries()) == 1 && string(nodes.Entries()[0].Data) == "\x63" })

	a.Publish(path, bytes.Repeat([]byte("x"), MaxData+1))
	expect.Eventually(t, "long data is truncated", func() bool { return len(nodes.Entries()[0].Data) == MaxData })
}

// One of several claimants gets the znode; a node that returns in another session gets its own back.
func testClaim(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	path := ShardIDPath("1")
	var sessions []*Session
	won := make(chan int)
	for i := range 5 {
		s := session(t, e.options(t))
		sessions = append(sessions, s)
		go func() {
			err := s.Claim(t.Context(), path, []byte{byte('a' + i)})
			if err != nil && !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
			if err != nil {
				i = -1
			}
			won <- i
		}()
	}
	winner := -1
	for range sessions {
		if i := <-won; i >= 0 {
			if winner >= 0 {
				t.Fatalf("sessions %d and %d both hold the claim", i, winner)
			}
			winner = i
		}
	}
	if winner < 0 {
		t.Fatal("no session holds the claim")
	}
	o := observe(t, e.servers)
	name := string(rune('a' + winner))
	o.expect(t, sessions[winner], map[string]string{path: name})

	again := session(t, e.options(t)) // the same node while its previous session still exists
	if err := again.Claim(t.Context(), path, []byte(name)); err != nil {
		t.Error(err)
	}
	o.expect(t, again, map[string]string{path: name})
	if err := sessions[winner].Close(); err != nil {
		t.Error(err)
	}
	other := sessions[(winner+1)%len(sessions)]
	expect.Error(t, "taken", other.Claim(t.Context(), path, []byte("other")), ErrTaken)
	if st := other.Status(); st.Pending+st.Published > 0 {
		expect.Eventually(t, "the failed claim is forgotten", func() bool { st := other.Status(); return st.Pending+st.Published == 0 })
	}
	again.Unpublish(path)
	flush(t, again)
	if err := other.Claim(t.Context(), path, []byte("other")); err != nil {
		t.Errorf("free: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := again.Claim(ctx, path, []byte("x")); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrTaken) {
		t.Errorf("after the end: %v", err)
	}
	flush(t, again)
	o.expect(t, other, map[string]string{path: "other"})
}

// Directories are pruned while other nodes publish in them.
func testPruneAndPublish(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	o := observe(t, e.servers)
	paths := []string{PartitionPath("db", "1", 0, "host-a:1"), PartitionPath("db", "1", 1, "host-a:1"), PartitionPath("db", "2", 0, "host-a:1")}
	want := map[string]string{}
	for range 50 {
		for _, p := range paths {
			a.Publish(p, []byte("x"))
			want[p] = "x"
			b.Prune(PartitionsDir + "/db")
			b.Prune(PartitionsDir)
		}
		flush(t, a)
		o.expect(t, a, want)
		for _, p := range paths {
			a.Unpublish(p)
		}
	}
	flush(t, a)
	for _, v := range []string{"3", "4"} {
		a.Publish(PartitionPath("db", v, 0, "host-a:1"), nil)
		flush(t, a)
		a.Unpublish(PartitionPath("db", v, 0, "host-a:1"))
	}
	flush(t, a)
	b.Prune(PartitionsDir + "/db")
	expect.Eventually(t, "empty directories are pruned", func() bool {
		exists, _, err := o.Exists("/sequins/v1/" + PartitionsDir + "/db")
		return err == nil && !exists
	})
	a.Publish(paths[0], nil)
	flush(t, a)
	b.Prune(PartitionsDir + "/db") // not empty: it stays
	b.Publish(paths[1], nil)
	flush(t, b)
	expect.Eventually(t, "b has pruned", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.prunes) == 0 })
	if exists, _, err := o.Exists("/sequins/v1/" + paths[0]); err != nil || !exists {
		t.Errorf("%s: exists %v, %v", paths[0], exists, err)
	}
}

// A znode that another client deletes or replaces is restored by the next audit.
func testDeletedByOthers(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a := session(t, e.options(t), func(s *Session) { s.audit = 50 * time.Millisecond })
	o := observe(t, e.servers)
	path := NodePath("a", "host-a:1")
	a.Publish(path, []byte("x"))
	flush(t, a)
	expect.NoError(t, o.Delete("/sequins/v1/"+path, -1))
	mine := func() bool {
		data, stat, err := o.Get("/sequins/v1/" + path)
		return err == nil && stat.EphemeralOwner == sessionID(a) && string(data) == "x"
	}
	expect.Eventually(t, "the znode exists again", mine)
	if _, err := o.Set("/sequins/v1/"+path, []byte("y"), -1); err != nil {
		t.Fatal(err)
	}
	expect.Eventually(t, "the znode has its data again", mine)
	if _, err := o.Multi(&zk.DeleteRequest{Path: "/sequins/v1/" + path, Version: -1},
		&zk.CreateRequest{Path: "/sequins/v1/" + path, Acl: zk.WorldACL(zk.PermAll)}); err != nil {
		t.Fatal(err)
	}
	expect.Eventually(t, "the znode belongs to the session again", mine)
	if st := a.Status(); st.Sessions != 1 {
		t.Errorf("status %+v", st)
	}
}

// Paths above the safe limit are not published, and the status reports it.
func testTooMany(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a := session(t, e.options(t))
	name := strings.Repeat("x", 1000)
	for p := range 2000 {
		a.Publish(PartitionPath("db", "1", p, name+":1"), nil)
	}
	settled := func() bool {
		st := a.Status()
		return st.Published > 1400 && st.Published+st.Pending == 2000 && strings.Contains(st.LastError, "more than 1536 KiB of paths")
	}
	expect.Eventually(t, "paths are published up to the limit", settled)
	for p := range 1000 {
		a.Unpublish(PartitionPath("db", "1", p, name+":1"))
	}
	expect.Eventually(t, "the remaining paths are published below the limit", func() bool { return a.Status().Published == 1000 && a.Status().Pending == 0 })
}

// A process that is killed and restarted takes over from its previous session what it publishes again. The rest is
// deleted with that session.
func testKilledAndRestarted(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	o := observe(t, e.servers)
	killed, cut := sessionThatCanBeKilled(t, e, long)
	paths := []string{NodePath("a", "host-a:1")}
	for p := range 600 {
		paths = append(paths, PartitionPath("db", "1", p, "host-a:1"))
	}
	for _, p := range paths {
		killed.Publish(p, []byte("old"))
	}
	flush(t, killed)
	cut()

	restarted := session(t, e.options(t))
	watcher := session(t, e.options(t))
	nodes, partitions := watch(watcher, NodesDir), watch(watcher, VersionDir("db", "1"))
	awaitSeen(t, nodes)
	awaitSeen(t, partitions)
	want := map[string]string{}
	for _, p := range paths[:400] { // the others are not loaded again yet
		restarted.Publish(p, []byte("new"))
		want[p] = "new"
	}
	flush(t, restarted)
	if _, stat, err := o.Get("/sequins/v1/" + paths[500]); err != nil || stat.EphemeralOwner != sessionID(killed) {
		t.Errorf("unpublished znode: %v", err)
	}
	expect.Eventually(t, "the new data is seen", func() bool { return len(nodes.Entries()) == 1 && string(nodes.Entries()[0].Data) == "new" })
	expect.Eventually(t, "the old session and its remaining znodes are gone", func() bool { return len(partitions.Entries()) == 399 })
	o.expect(t, restarted, want)

	// The old process, if it resumes, deletes nothing of its successor's.
	other := session(t, e.options(t))
	other.Publish(paths[1], []byte("other"))
	flush(t, other)
	restarted.Unpublish(paths[1])
	flush(t, restarted)
	if data, _, err := o.Get("/sequins/v1/" + paths[1]); string(data) != "other" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestClaimOfAClosedSession(t *testing.T) {
	s := session(t, Options{Servers: []string{"127.0.0.1:1"}, ConnectTimeout: time.Second, SessionTimeout: long, Root: "/r"})
	s.Publish("a", nil)
	s.Close()
	expect.Error(t, "claim", s.Claim(t.Context(), "a", nil), ErrClosed)
	s.Publish("b", nil)
	if st := s.Status(); st.Published+st.Pending > 0 {
		t.Errorf("%+v", st)
	}
}
