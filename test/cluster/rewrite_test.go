//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
)

// with returns the cluster with other data: what its members answer is compared with that.
func (c *cluster) with(d dataset) *cluster {
	other := *c
	other.data = d
	return &other
}

// tagged returns the data with another tag.
func (d dataset) tagged(tag string) dataset {
	d.tag = tag
	return d
}

// rewrite replaces the files of a version in the source by those of the data, one by one, and its marker at the end.
func (d dataset) rewrite(t testing.TB, source, version string) {
	t.Helper()
	away := t.TempDir()
	d.publish(t, away, version)
	expect.NoError(t, replaceFiles(filepath.Join(away, db, version), filepath.Join(source, db, version)))
}

// replaceFiles replaces files by those of the same names in another directory, the marker last.
func replaceFiles(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "part-*"))
	for _, f := range append(files, filepath.Join(from, "_SUCCESS")) {
		data, rerr := os.ReadFile(f)
		temp := filepath.Join(to, "."+filepath.Base(f))
		err = errors.Join(err, rerr, os.WriteFile(temp, data, 0o644), os.Rename(temp, filepath.Join(to, filepath.Base(f))))
	}
	return err
}

// refresh has all members that run look at the source, as sequins refresh does.
func (c *cluster) refresh(t testing.TB) {
	t.Helper()
	for _, m := range c.live() {
		m.node.Signal(t, syscall.SIGHUP)
	}
}

// waitContent waits until each of some members answers every key from a content of a version.
func (c *cluster) waitContent(t testing.TB, members []*member, d dataset, version string) {
	t.Helper()
	for _, m := range members {
		var last error
		defer func() {
			if last != nil {
				t.Logf("%s does not serve content %q of %s: %v", m.name, d.tag, version, last)
			}
		}()
		m.node.WaitFor(t, fmt.Sprintf("%s serves content %q of %s", m.name, d.tag, version), func() bool {
			client := m.node.Client()
			defer client.Close()
			last = c.with(d).expectAll(client, m, version, nil, 0, 1)
			return last == nil
		})
	}
}

// children returns the processes that a member has started and that have not ended.
func (m *member) children() (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", m.node.PID()))
	for _, path := range tasks {
		b, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil && !strings.Contains("ZX", stateOf(pid)) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// stateOf returns the state of a process as a letter, X if there is none.
func stateOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, rest, found := strings.Cut(string(b), ") "); found && err == nil {
		return rest[:1]
	}
	return "X"
}

// stopLoad stops the processes that load a version for a member, and returns a function that lets it go on.
func (m *member) stopLoad(t testing.TB, version string) (goOn func()) {
	t.Helper()
	var pids []int
	m.node.WaitFor(t, m.name+" loads", func() bool {
		if m.node.Health(t)[db][version].State != "BUILDING" {
			return false
		}
		pids = m.children()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		return len(pids) > 0
	})
	goOn = func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended before it was stopped
		}
	}
	t.Cleanup(goOn)
	return goOn
}

// startWith starts a member with other sections than the rest of the cluster.
func (m *member) startWith(t testing.TB, sections string) {
	t.Helper()
	others := m.c.settings.sections
	m.c.settings.sections = sections
	m.start(t)
	m.c.settings.sections = others
}

// serves reports what the clients of all members see.
func (c *cluster) serves(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range c.live() {
		all[m.name] = m.current(t)
	}
	return all
}

// expectServes fails the test unless each member that runs serves a version.
func (c *cluster) expectServes(t testing.TB, version string) {
	t.Helper()
	for name, got := range c.serves(t) {
		if got != version {
			t.Errorf("%s serves %q, want %s", name, got, version)
		}
	}
}
