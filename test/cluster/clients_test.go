//go:build integration

package cluster

import (
	"errors"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// A recording is a history that is being made: of clients that ask for one thing after the other, and of what happens to
// the members. Some clients are bound to one member each, and read keys or batches; others go from member to member in
// sessions.
type recording struct {
	*checker.History
	c    *cluster
	stop atomic.Bool
	wg   sync.WaitGroup
	last sync.Map // of each member's name, the last checker.Read that it answered from its current version

	mu       sync.Mutex
	seen     summary
	contents map[string][]dataset // that versions have had, in any order; nil: each has that of the cluster's data
}

// pace is what a client waits between two reads of a key, and slowPace between two of more than that; redialIn is what it
// waits after one that nobody took. Without them the clients would leave nothing of two cores to the cluster, whose loads
// have the lowest priority. maxPace is the longest wait: on a slow machine, whose answers take long, clients ask less.
const (
	pace     = 25 * time.Millisecond
	slowPace = 60 * time.Millisecond
	redialIn = 20 * time.Millisecond
	maxPace  = 80 * time.Millisecond
)

// record begins a history of a cluster whose members already serve versions.
func record(t testing.TB, c *cluster, versions ...string) *recording {
	t.Helper()
	r := &recording{History: &checker.History{}, c: c}
	for _, v := range versions {
		r.Note(checker.Event{Kind: checker.Publish, Version: v})
	}
	for _, m := range c.members {
		r.bind(m)
	}
	r.roam()
	r.wg.Go(r.watchMachine)
	return r
}

// Every heartbeat, watchMachine starts a process that does nothing. If that takes longer than maxBeat, it is the machine that
// stands still, and not the cluster.
const (
	heartbeat = 250 * time.Millisecond
	maxBeat   = 500 * time.Millisecond
)

// watchMachine records when the machine stands still.
func (r *recording) watchMachine() {
	for !r.stop.Load() {
		began := r.Now()
		exec.Command("true").Run() //nolint:errcheck // only the time counts
		if ended := r.Now(); ended-began > maxBeat {
			r.Note(checker.Event{Kind: checker.Stall, For: ended - began})
		}
		time.Sleep(heartbeat)
	}
}

// bind lets clients ask a member: one for keys, one for batches, and one as clients of Redis do.
func (r *recording) bind(m *member) {
	r.wg.Go(func() { r.ask(m, 0, pace, r.c.data.anyKey) })
	r.wg.Go(func() { r.ask(m, 1, slowPace, r.c.data.anyBatch) })
	r.wg.Go(func() { r.askRedis(m, 2) })
}

// A request is the request of a client, with the parser of its answer.
type request struct {
	read           checker.Read // what is asked for
	method, target string
	header         string
	body           []byte
	take           func(a *process.Response, read *checker.Read) error // of status 200
}

// anyKey requests a key at random.
func (d dataset) anyKey() request {
	key := d.key(rand.IntN(d.keys))
	return request{read: checker.Read{Key: key}, method: "GET", target: "/" + db + "/" + key, take: takeValue}
}

func takeValue(a *process.Response, read *checker.Read) error {
	read.Body = string(a.Body)
	return nil
}

// ask sends requests to one member until the end.
func (r *recording) ask(m *member, number int, pace time.Duration, next func() request) {
	client := process.NewClient(m.addr())
	defer client.Close()
	for !r.stop.Load() {
		q := next()
		q.read.Client = number
		read := r.send(client, m.name, q)
		r.add(read)
		wait(read, pace)
	}
}

// add adds reads to the history.
func (r *recording) add(reads ...checker.Read) {
	r.Add(reads...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, read := range reads {
		r.seen.count(read)
	}
}

// wait waits after a read for pace, or for twice what the read took.
func wait(read checker.Read, pace time.Duration) {
	if read.Code == 0 {
		pace = redialIn
	}
	time.Sleep(max(pace, min(2*(read.End-read.Start), maxPace)))
}

// send sends a request to a node and returns what came of it.
func (r *recording) send(client *process.Client, node string, q request) checker.Read {
	read := q.read
	read.Node, read.Start = node, r.Now()
	used := client.Connected()
	a, err := client.Send(q.method, q.target, q.header, q.body)
	if used && isClosed(err) { // the node has been restarted since the last request
		a, err = client.Send(q.method, q.target, q.header, q.body)
	}
	read.End = r.Now()
	if err != nil {
		read.Err = err.Error()
		return read
	}
	read.Code, read.Version, read.Peer = a.Code, a.Version(), a.Header.Get("X-Sequins-Proxied-To")
	if a.Code != 200 {
		read.Body = string(a.Body)
	} else if err := q.take(a, &read); err != nil {
		read.Err = err.Error()
	}
	if read.Version != "" && read.Code < 500 && read.Exact == "" {
		r.last.Store(node, read)
	}
	return read
}

// isClosed reports whether a connection was closed before the first byte of an answer.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// heard reports whether a member has answered a client from a version since a moment. Requests sent during a fault
// may take longer.
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

// publishContent records that a version is about to have files of data with a tag, by which the checker tells it from the other contents of the version.
func (r *recording) publishContent(version string, d dataset) {
	r.mu.Lock()
	if r.contents == nil {
		r.contents = map[string][]dataset{}
	}
	if !slices.Contains(r.contents[version], d) {
		r.contents[version] = append(r.contents[version], d)
	}
	r.mu.Unlock()
	r.Note(checker.Event{Kind: checker.Publish, Version: version})
	r.Note(checker.Event{Kind: checker.Publish, Version: version + d.tag})
}

// setContents adds to the rules that versions have had several contents.
func (r *recording) setContents(rules *checker.Rules) {
	type content struct {
		dataset
		version string
	}
	all, names := map[string]content{}, map[string][]string{}
	for version, contents := range r.contents {
		for _, d := range contents {
			all[version+d.tag] = content{d, version}
			names[version] = append(names[version], version+d.tag)
		}
	}
	rules.Value = func(key, name string) (string, bool) { return all[name].value(key, all[name].version) }
	rules.Keys = func(name string) []string { return all[name].sorted(all[name].version) }
	rules.Contents = func(version string) []string { return names[version] }
}

// finish ends the clients, and returns what their history breaks of the rules.
func (r *recording) finish() []checker.Violation {
	r.stop.Store(true)
	r.wg.Wait()
	rules := checker.Rules{Value: r.c.data.value, Keys: r.c.data.sorted, Convergence: convergence,
		Patience: proxyTimeout + 2*time.Second, BatchPatience: 2*proxyTimeout + 2*time.Second,
		RangePatience: proxyTimeout + 2*time.Second + rangeScale*stageTimeout}
	if r.contents != nil {
		r.setContents(&rules)
	}
	for _, m := range r.c.members {
		rules.Nodes = append(rules.Nodes, m.name)
	}
	return checker.Check(r.History, rules)
}

// rangeScale is the greatest multiple of proxy_stage_timeout after which a node that counts or reads a range asks another
// one.
const rangeScale = 32

// convergence is how long after the last fault members may be behind.
const convergence = 30 * time.Second

// judge finishes a recording when each kind of answer has come, and fails the test for each violation of the rules.
// Then it saves the history under the name.
func (r *recording) judge(t testing.TB, name string) {
	t.Helper()
	defer r.stop.Store(true)
	if !t.Failed() {
		r.awaitAll(t)
	}
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
}
