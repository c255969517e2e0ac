//go:build integration

package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/checker"
	"sequins/test/process"
)

// A sabotage is a change to the source of the program, by which it breaks a
// promise.
type sabotage struct {
	name    string
	changes []change
	rule    string // that the checker has to find broken
}

// A change replaces one piece of a file.
type change struct{ file, old, new string }

var sabotages = []sabotage{
	{"nothing is broken", nil, ""},
	{"a peer answers from the version that it serves, and says it were the one asked for", []change{
		{"reads/read.go", "set.AcquireVersion(string(q.Version), string(q.Content))", "set.Acquire()"},
		{"reads/read.go", "r.Version, r.Content = r.labels.version, r.labels.content", "r.Version, r.Content = r.labels.version, r.labels.content\nif q.fromPeer() {\nr.Version, r.Content = q.Version, q.Content\n}"},
	}, "wrong answer"},
	{"a peer answers from the version that it serves, and the answer is passed on", []change{
		{"reads/read.go", "set.AcquireVersion(string(q.Version), string(q.Content))", "set.Acquire()"},
		{"proxy/attempt.go", "if string(h.Version) != a.q.Version {", "if false {"},
		{"reads/read.go", "r.Peer, r.Status, r.Length", "r.Version = a.Header.Version\nr.Peer, r.Status, r.Length"},
	}, "went back"},
	{"X-Sequins-At-Least has no effect", []change{
		{"reads/read.go", "if string(r.Version) < string(q.AtLeast) {", "if false {"},
	}, "wrong answer"},
	{"a batch lacks the values of other nodes", []change{
		{"reads/fetch.go", "r.Values[uint32(i)] = value", "r.Values[uint32(i)] = nil"},
	}, "wrong answer"},
	{"a cursor goes on in the version that the node serves", []change{
		{"reads/scanrange.go", "q.Exact, q.after = []byte(name), c.content", "q.Exact, q.after = nil, content.Content{}"},
	}, "wrong answer"},
	{"a peer answers from another content of the version", []change{
		{"reads/read.go", "set.AcquireVersion(string(q.Version), string(q.Content))", `set.AcquireVersion(string(q.Version), "")`},
	}, "wrong answer"},
}

// TestSabotage shows that the checker finds what it is there to find: programs that
// are broken on purpose go through one upgrade and a change of its files, in both of which one node stays behind.
func TestSabotage(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			found := upgradeWith(t, z, s.build(t))
			rules := map[string]bool{}
			for _, v := range found {
				rules[v.Rule] = true
			}
			if s.rule == "" && len(found) > 0 || s.rule != "" && !rules[s.rule] {
				t.Errorf("found %v; want %q", found[:min(len(found), 3)], s.rule)
			}
		})
	}
}

// build builds the program with the changes, in place of which the files in the
// tree stay as they are.
func (s sabotage) build(t testing.TB) string {
	t.Helper()
	if len(s.changes) == 0 {
		return process.Binary(t)
	}
	dir := t.TempDir()
	changed := map[string]string{}
	for _, c := range s.changes {
		if changed[c.file] == "" {
			b, err := os.ReadFile(filepath.Join(process.Root(), c.file))
			if err != nil {
				t.Fatal(err)
			}
			changed[c.file] = string(b)
		}
		if n := strings.Count(changed[c.file], c.old); n != 1 {
			t.Fatalf("%s holds %q %d times; this test has to follow the code", c.file, c.old, n)
		}
		changed[c.file] = strings.Replace(changed[c.file], c.old, c.new, 1)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range changed {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(process.Root(), file)] = path
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sequins")
	if err := process.Build(binary, "-ldflags", "-s -w", "-overlay", filepath.Join(dir, "overlay.json")); err != nil {
		t.Fatal(err)
	}
	return binary
}

// waitReplaced waits until each of some members answers the first key from a content of a version. A broken program may have others wrong.
func (c *cluster) waitReplaced(t testing.TB, members []*member, d dataset, version string) {
	t.Helper()
	for _, m := range members {
		m.node.WaitFor(t, m.name+" has switched", func() bool {
			r, err := m.node.TryGet("/" + db + "/" + d.key(0))
			return err == nil && d.holds(d.key(0), r)
		})
	}
}

// upgradeWith takes a cluster of a program through an upgrade and a change of files of which one node
// does not hear for a while, and returns what its clients had to complain of.
func upgradeWith(t testing.TB, z *zookeeper, binary string) []checker.Violation {
	t.Helper()
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 8, tag: "-x"}, members: 3, replication: 2,
		sharding: []string{"min_replication = 1"}}) // so that two can go on without the third
	for _, m := range c.members {
		m.config.Binary = binary
	}
	c.begin(t, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	r := record(t, c, 2, versionName(1), versionName(1)+c.data.tag)
	r.publishContent(versionName(1), c.data)
	prompt, late := c.members[:2], c.members[2]
	late.link.refuse()
	r.publishContent(versionName(2), c.data)
	c.publish(t, versionName(2))
	for _, m := range prompt {
		m.node.WaitCurrent(t, db, versionName(2))
	}
	if v := late.current(t); v != versionName(1) {
		t.Errorf("%s serves %s: this shows nothing", late.name, v)
	}
	late.link.allow(t)
	c.waitServed(t, versionName(2))
	late.link.refuse()
	replaced := c.data.tagged("-y")
	r.publishContent(versionName(2), replaced)
	replaced.rewrite(t, c.source, versionName(2))
	c.refresh(t)
	c.waitReplaced(t, prompt, replaced, versionName(2))
	if key := c.data.key(0); !c.data.holds(key, late.node.Get(t, "/"+db+"/"+key)) {
		t.Errorf("%s has switched: this shows nothing", late.name)
	}
	late.link.allow(t)
	c.waitReplaced(t, c.members, replaced, versionName(2))
	found := r.finish()
	slices.SortFunc(found, func(a, b checker.Violation) int { return strings.Compare(a.Rule, b.Rule) })
	return found
}
