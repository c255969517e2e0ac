//go:build integration

package cluster

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/checker"
	"sequins/test/expect"
	"sequins/test/process"
)

// A sabotage is a way in which the program breaks a promise.
type sabotage struct {
	mode string // of the program, see changes; "": it breaks none
	name string
	rule string // that the checker has to find broken
}

var sabotages = []sabotage{
	{"", "nothing is broken", ""},
	{"forge", "a peer answers from the version that it serves, and says it were the one asked for", "wrong answer"},
	{"pass", "a peer answers from the version that it serves, and the answer is passed on", "went back"},
	{"behind", "X-Sequins-At-Least has no effect", "wrong answer"},
	{"batch", "a batch lacks the values of other nodes", "wrong answer"},
	{"cursor", "a cursor goes on in the version that the node serves", "wrong answer"},
	{"content", "a peer answers from another content of the version", "wrong answer"},
}

// modeVariable is the environment variable by which the broken program knows its mode.
const modeVariable = "SEQUINS_TEST_SABOTAGE"

// A change replaces one piece of a file.
type change struct{ file, old, new string }

// changes make the program that is broken as its mode says. One program for all modes is built once.
var changes = []change{
	{"reads/read.go", "set.AcquireVersion(string(q.Version), string(q.Content))", "acquireWrong(set, string(q.Version), string(q.Content))"},
	{"reads/read.go", "r.Version, r.Content = r.labels.version, r.labels.content", `r.Version, r.Content = r.labels.version, r.labels.content
	if sabotage == "forge" && q.fromPeer() {
		r.Version, r.Content = q.Version, q.Content
	}`},
	{"reads/read.go", "r.Peer, r.Status, r.Length", `if sabotage == "pass" {
		r.Version = a.Header.Version
	}
	r.Peer, r.Status, r.Length`},
	{"reads/read.go", "if string(r.Version) < string(q.AtLeast) {", `if sabotage != "behind" && string(r.Version) < string(q.AtLeast) {`},
	{"reads/fetch.go", "r.Values[uint32(i)] = value", `r.Values[uint32(i)] = value
	if sabotage == "batch" {
		r.Values[uint32(i)] = nil
	}`},
	{"reads/scanrange.go", "q.Exact, q.after = []byte(name), c.content", `if sabotage != "cursor" {
		q.Exact, q.after = []byte(name), c.content
	}`},
	{"proxy/attempt.go", "if string(h.Version) != a.q.Version {", `if sabotage != "pass" && string(h.Version) != a.q.Version {`},
	{"proxy/attempt.go", "len(asked) > 0 &&", `sabotage != "pass" && sabotage != "content" && len(asked) > 0 &&`},
}

// added are files of the broken program that this one does not have.
var added = map[string]string{
	"proxy/sabotage.go": `package proxy

import "os"

var sabotage = os.Getenv("` + modeVariable + `")
`,
	"reads/sabotage.go": `package reads

import (
	"os"

	"sequins/version"
)

var sabotage = os.Getenv("` + modeVariable + `")

func acquireWrong(set *version.Set, name, code string) *version.Handle {
	switch sabotage {
	case "forge", "pass":
		return set.Acquire()
	case "content":
		code = ""
	}
	return set.AcquireVersion(name, code)
}
`,
}

// TestSabotage shows that the checker finds what it is there to find: programs that
// are broken on purpose go through one upgrade and a change of its files, in both of which one node stays behind.
func TestSabotage(t *testing.T) {
	t.Parallel()
	z, binary := sharedZookeeper(t), buildBroken(t)
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			found := upgradeWith(t, z, binary, s.mode)
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

// buildBroken builds the program with the changes, in place of which the files in the tree stay as they are.
func buildBroken(t testing.TB) string {
	t.Helper()
	dir, changed := t.TempDir(), maps.Clone(added)
	for _, c := range changes {
		if changed[c.file] == "" {
			b, err := os.ReadFile(filepath.Join(process.Root(), c.file))
			expect.NoError(t, err)
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
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		overlay.Replace[filepath.Join(process.Root(), file)] = path
	}
	b, err := json.Marshal(overlay)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o644))
	binary := filepath.Join(dir, "sequins")
	expect.NoError(t, process.Build(binary, "-ldflags", "-s -w", "-overlay", filepath.Join(dir, "overlay.json")))
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

// upgradeWith takes a cluster of a program in a mode through an upgrade and a change of files of which one node
// does not hear for a while, and returns what its clients had to complain of.
func upgradeWith(t testing.TB, z *zookeeper, binary, mode string) []checker.Violation {
	t.Helper()
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 8, tag: "-x"}, members: 3, replication: 2,
		sharding: []string{"min_replication = 1"}}) // so that two can go on without the third
	for _, m := range c.members {
		m.config.Binary, m.config.Prefix = binary, append(m.config.Prefix, "env", modeVariable+"="+mode)
	}
	c.begin(t, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	r := record(t, c, versionName(1), versionName(1)+c.data.tag)
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
