//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/checker"
	"sequins/test/expect"
	"sequins/test/process"
)

// TestTwoContentsOfOneName replaces the files of the version that is served by others, and by the first ones again, while a router and the nodes
// are asked: every answer is from one of the two, no key that both have is ever missing, and all nodes end with what the source has.
func TestTwoContentsOfOneName(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	first := dataset{keys: 600, partitions: 6, tag: "-x"}
	for nodes, second := range map[int]dataset{
		2: {keys: 500, partitions: 6, pad: 50, tag: "-other"}, // of other sizes
		3: first.tagged("-y"),                                 // of equal sizes
	} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, z, settings{data: first, members: nodes, replication: nodes - 1, extra: "version_remove_timeout = \"5s\"\n"})
			testTwoContents(process.Recap(t), c, second)
		})
	}
}

func testTwoContents(t testing.TB, c *cluster, second dataset) {
	first, version := c.data, versionName(1)
	c.publish(t, version)
	c.startAll(t)
	router := c.add(t, `role = "router"`)
	router.start(t)
	c.waitServed(t, version)
	c.waitContent(t, c.members, first, version)
	r := record(t, c, version, version+first.tag)
	r.publishContent(version, first)
	r.publishContent(version, second)
	defer r.judge(t, "history-two-contents")
	for _, d := range []dataset{second, first, second} {
		d.rewrite(t, c.source, version)
		c.refresh(t)
		c.waitContent(t, c.members, d, version)
	}
	// The files change again as soon as a node has found that they have.
	first.rewrite(t, c.source, version)
	c.refresh(t)
	loads := strings.Count(c.members[0].node.Log(), "load started")
	c.members[0].node.WaitFor(t, "it loads again", func() bool { return strings.Count(c.members[0].node.Log(), "load started") > loads })
	second.rewrite(t, c.source, version)
	c.refresh(t)
	c.waitContent(t, c.members, second, version)
}

// TestCursorStaysInItsContent reads a part of a version in order, and goes on when its files have been replaced: a node has the rest of what it
// began with, or says that it is gone.
func TestCursorStaysInItsContent(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	first := dataset{keys: 600, partitions: 6, tag: "-x"}
	c := newCluster(t, z, settings{data: first, members: 3, replication: 2, extra: "version_remove_timeout = \"5s\"\n"})
	version := versionName(1)
	c.begin(t, version)
	c.waitContent(t, c.members, first, version)
	begin := func(m *member) checker.Read { return c.page(t, m, checker.Bounds{Limit: 50}, "") }
	var begun []checker.Read
	for _, m := range c.members {
		begun = append(begun, begin(m))
	}
	second := first.tagged("-y")
	second.rewrite(t, c.source, version)
	c.refresh(t)
	ended := 0
	continueAll := func() {
		for i := range begun {
			m := c.members[(i+1)%len(c.members)]
			next := c.page(t, m, checker.Bounds{Limit: 50, After: begun[i].Keys[len(begun[i].Keys)-1]}, begun[i].Cursor)
			if next.Code == 410 {
				ended++
				continue
			}
			c.checkPage(t, m, next, first)
		}
	}
	for range 20 { // while the nodes load and switch
		continueAll()
	}
	c.waitContent(t, c.members, second, version)
	continueAll()
	for _, m := range c.members {
		m.node.WaitFor(t, "what was replaced is gone", func() bool {
			ended = 0
			continueAll()
			return ended == len(begun)
		})
		c.checkPage(t, m, begin(m), second)
	}
}

// page reads records in order from a member.
func (c *cluster) page(t testing.TB, m *member, b checker.Bounds, cursor string) checker.Read {
	t.Helper()
	client := m.node.Client()
	defer client.Close()
	read := (&recording{History: &checker.History{}, c: c}).send(client, m.name, rangeRequest(b, cursor, false))
	if read.Code != 410 && (read.Code != 200 || read.Err != "") {
		t.Errorf("%s: %d %s %s", m.name, read.Code, read.Body, read.Err)
	}
	return read
}

// checkPage compares some records in order with the data.
func (c *cluster) checkPage(t testing.TB, m *member, read checker.Read, d dataset) {
	t.Helper()
	keys := d.sorted(read.Version)
	if read.After != "" {
		behind, _ := slices.BinarySearch(keys, read.After+"\x00")
		keys = keys[behind:]
	}
	keys = keys[:min(len(keys), read.Limit)]
	if !slices.Equal(read.Keys, keys) {
		t.Fatalf("%s: keys %.200v, want %.200v", m.name, read.Keys, keys)
	}
	for i, key := range keys {
		if want, _ := d.value(key, read.Version); read.Values[i] == nil || *read.Values[i] != want {
			t.Fatalf("%s: %s: %.100q, want %.100q", m.name, key, *read.Values[i], want)
		}
	}
}

// TestRollbackAfterSourceChanged restarts three nodes with another source, which has other files of the version before. A rollback leads to those, and
// to the blocks that the nodes have kept if that source lacks the version.
func TestRollbackAfterSourceChanged(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for _, lacks := range []bool{false, true} {
		t.Run(fmt.Sprintf("it lacks the version: %v", lacks), func(tt *testing.T) {
			tt.Parallel()
			t := process.Recap(tt)
			data := dataset{keys: 500, partitions: 4, tag: "-x"}
			c := newCluster(t, z, settings{data: data, members: 3, replication: 2, extra: "keep_versions = 2\n"})
			old, bad := versionName(1), versionName(2)
			for _, version := range []string{old, bad} {
				c.publish(t, version)
				if !c.members[0].up {
					c.startAll(t)
				}
				c.waitServed(t, version)
			}
			l := z.look(t)
			c.waitWhole(t, l, old)
			c.waitWhole(t, l, bad)

			want, next := data.tagged("-y"), filepath.Join(t.TempDir(), "next")
			data.publish(t, next, bad)
			if lacks {
				want = data
			} else {
				want.publish(t, next, old)
			}
			c.source = next
			for _, m := range c.members {
				m.terminate(t)
				m.config.Source = next
				m.start(t)
				m.waitReady(t)
			}
			c.expectServes(t, bad)
			c.waitWhole(t, l, bad)
			clients := c.watchContents(t, func(version string) []dataset {
				if version == old {
					return []dataset{want}
				}
				return []dataset{data}
			})
			c.pin(t, `exclude = ["`+bad+`"]`)
			c.waitContent(t, c.members, want, old)
			clients.finish(t, []string{bad, old})
		})
	}
}

// TestSourceReplacedInRollingRestart restarts one node after the other with a source that names the same files in another way, or equal ones in another
// place: no request fails, nothing is loaded, and a version that comes meanwhile is served by all.
func TestSourceReplacedInRollingRestart(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for name, replace := range map[string]func(source, dir string) (string, error){
		"a URL": func(source, _ string) (string, error) { return "file://" + source, nil },
		"a symbolic link": func(source, dir string) (string, error) {
			link := filepath.Join(dir, "link")
			return link, os.Symlink(source, link)
		},
		"a copy": func(source, dir string) (string, error) {
			copied := filepath.Join(dir, "copy")
			return copied, os.CopyFS(copied, os.DirFS(source)) // with times of its own
		},
	} {
		t.Run(name, func(tt *testing.T) {
			tt.Parallel()
			t := process.Recap(tt)
			c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 8}, members: 3, replication: 2, extra: "shutdown_delay = \"1s\"\n"})
			l, former := z.look(t), c.source
			c.begin(t, versionName(1))
			c.waitWhole(t, l, versionName(1))
			next, err := replace(c.source, t.TempDir())
			expect.NoError(t, err)
			load := c.balanced()
			c.calm(t, load)
			for i, m := range c.members {
				m.terminate(t)
				m.config.Source = next
				m.start(t)
				m.waitReady(t)
				if got := m.number(t, fmt.Sprintf("sequins_load_bytes_total{db=%q}", db)); got > 0 || strings.Contains(m.node.Log(), "load started") {
					t.Errorf("%s has read %.0f bytes of files that it had loaded", m.name, got)
				}
				if i == 1 { // the nodes have two sources
					version := versionName(2)
					c.publish(t, version)
					if name == "a copy" {
						expect.NoError(t, copyVersion(former, next, version))
					}
					c.waitServed(t, version)
					c.waitWhole(t, l, version)
				}
			}
			c.waitWhole(t, l, versionName(2))
			c.calm(t, load)
			c.expectAnswers(t, load.Stop(), never)
			c.checkWhole(t, versionName(2))
			for _, m := range c.members {
				if problems := m.status(t).Problems; len(problems) > 0 {
					t.Errorf("%s has problems: %q", m.name, problems)
				}
			}
		})
	}
}

// copyVersion copies a version to another source, as one step.
func copyVersion(from, to, version string) error {
	temp := filepath.Join(to, db, "_"+version)
	return errors.Join(os.CopyFS(temp, os.DirFS(filepath.Join(from, db, version))), os.Rename(temp, filepath.Join(to, db, version)))
}
