//go:build integration

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"sequins/config"
	"sequins/test/expect"
	"sequins/test/process"
)

// A cgroup limits the memory of a container.
type cgroup struct {
	dir string
	v1  bool
}

var cgroups atomic.Int64

// newCgroup makes a group with a limit of Kubernetes, such as 1Gi.
func newCgroup(t testing.TB, limit any) *cgroup {
	t.Helper()
	g := &cgroup{}
	root, file := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "memory", "memory.limit_in_bytes")); err == nil {
		root, file, g.v1 = filepath.Join(root, "memory"), "memory.limit_in_bytes", true
	} else if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0o644); err != nil {
		t.Fatalf("no control groups that limit memory: %v", err)
	}
	g.dir = filepath.Join(root, fmt.Sprintf("sequins-test-%d-%d", os.Getpid(), cgroups.Add(1)))
	expect.NoError(t, os.Mkdir(g.dir, 0o755))
	if limit == nil {
		return g
	}
	bytes, err := config.ParseSize(strings.Replace(fmt.Sprint(limit), "i", "iB", 1))
	if err == nil {
		err = os.WriteFile(filepath.Join(g.dir, file), fmt.Append(nil, int64(bytes)), 0o644)
	}
	expect.NoError(t, err)
	return g
}

// remove removes the group, whose processes have been killed.
func (g *cgroup) remove(t testing.TB) {
	t.Helper()
	process.Eventually(t, "the control group is empty", func() bool { return !errors.Is(os.Remove(g.dir), syscall.EBUSY) })
}
