//go:build integration

package cluster

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// A recording is a history that is being made: of clients that are bound to one
// member each and ask for one key after the other, and of what happens to the
// members.
type recording struct {
	*checker.History
	c    *cluster
	stop atomic.Bool
	wg   sync.WaitGroup
	last sync.Map // of each member's name, the last checker.Read that it answered from a version
}

// pace is what a client waits between two reads, and after one that nobody took.
// Without it the clients would leave nothing of two cores to the cluster.
const (
	pace     = 500 * time.Microsecond
	redialIn = 10 * time.Millisecond
)

// record begins a history of a cluster whose members serve versions already, with
// so many clients to each of them.
func record(t testing.TB, c *cluster, clients int, versions ...string) *recording {
	t.Helper()
	r := &recording{History: &checker.History{}, c: c}
	for _, v := range versions {
		r.Note(checker.Event{Kind: checker.Publish, Version: v})
	}
	for _, m := range c.members {
		r.bind(t, m, clients)
	}
	return r
}

// bind lets clients ask a member.
func (r *recording) bind(t testing.TB, m *member, clients int) {
	t.Helper()
	for i := range clients {
		client := m.node.Client()
		r.wg.Go(func() { r.Add(r.ask(m, i, client)) })
	}
}

// ask reads keys at random from one member until the end.
func (r *recording) ask(m *member, number int, client *process.Client) []checker.Read {
	defer client.Close()
	var reads []checker.Read
	for !r.stop.Load() {
		key := r.c.data.key(rand.IntN(r.c.data.keys))
		read := checker.Read{Node: m.name, Client: number, Key: key, Start: r.Now()}
		answer, err := client.Get("/" + db + "/" + key)
		read.End = r.Now()
		wait := pace
		if err != nil {
			read.Err = err.Error()
			wait = redialIn
		} else {
			read.Code, read.Version, read.Body = answer.Code, answer.Version(), string(answer.Body)
			read.Peer = answer.Header.Get("X-Sequins-Proxied-To")
		}
		reads = append(reads, read)
		if read.Version != "" && read.Code < 500 {
			r.last.Store(m.name, read)
		}
		time.Sleep(wait)
	}
	return reads
}

// heard says whether a member has answered a client from a version since a moment. What was asked during a fault may
// take its clients a while longer.
func (r *recording) heard(m *member, version string, since time.Duration) bool {
	read, ok := r.last.Load(m.name)
	return ok && read.(checker.Read).Version >= version && read.(checker.Read).End >= since
}

// note records an event.
func (r *recording) note(kind checker.Kind, m *member, note string) {
	e := checker.Event{Kind: kind, Note: note}
	if m != nil {
		e.Node = m.name
	}
	r.Note(e)
}

// publish puts a version into the source.
func (r *recording) publish(t testing.TB, version string) {
	t.Helper()
	r.Note(checker.Event{Kind: checker.Publish, Version: version})
	r.c.publish(t, version)
}

// finish ends the clients, and returns what their history breaks of the rules.
func (r *recording) finish() []checker.Violation {
	r.stop.Store(true)
	r.wg.Wait()
	rules := checker.Rules{Value: r.c.data.value, Patience: proxyTimeout + 2*time.Second, Convergence: convergence}
	for _, m := range r.c.members {
		rules.Nodes = append(rules.Nodes, m.name)
	}
	return checker.Check(r.History, rules)
}

// convergence is how long after the last fault members may be behind.
const convergence = 30 * time.Second

// judge finishes a recording and fails the test for what it breaks of the rules.
// Then the history is kept under the name.
func (r *recording) judge(t testing.TB, name string) {
	t.Helper()
	found := r.finish()
	for i, v := range found {
		if i == 20 {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		t.Error(v)
	}
	if t.Failed() {
		path := filepath.Join(process.Root(), ".cache", name+".jsonl.gz")
		if err := r.Save(path); err != nil {
			t.Error(err)
		}
		t.Logf("the history is in %s", path)
	}
	r.describe(t)
}

// describe logs how much was asked, and fails the test if some kind of answer
// never came.
func (r *recording) describe(t testing.TB) {
	t.Helper()
	var local, proxied, absent, errors, refused int
	for _, read := range r.Reads {
		switch {
		case read.Code == 0:
			refused++
		case read.Code >= 500:
			errors++
		case read.Code == 404:
			absent++
		case read.Peer != "":
			proxied++
		default:
			local++
		}
	}
	t.Logf("%d reads: %d local, %d proxied, %d of absent keys, %d errors, %d without an answer",
		len(r.Reads), local, proxied, absent, errors, refused)
	if local == 0 || proxied == 0 || absent == 0 {
		t.Error("this shows too little")
	}
}
