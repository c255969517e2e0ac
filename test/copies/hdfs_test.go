//go:build integration

package copies

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// A hadoop is an HDFS, in which each scene has a directory of its own.
type hadoop struct {
	*harness.Harness
	conf string // HADOOP_CONF_DIR
	root string // URL
}

// A tree is the scene of a node whose source is a directory of HDFS.
type tree struct {
	*scene
	hadoop
	staging string // version 2, in HDFS
	local   string // version 2, on the local disk
}

// path returns the path of a version in HDFS.
func (h hadoop) path(version string) string {
	return fmt.Sprintf("%s/source/%s/%s", h.root, db, version)
}

// put writes a directory at once.
func (h hadoop) put(t testing.TB, from, to string) {
	t.Helper()
	h.Do(t, fmt.Sprintf("dfs put src=%s dst=%s", from, to))
}

func (h hadoop) tool(t testing.TB, class string, args ...string) *exec.Cmd {
	t.Helper()
	cmd, err := harness.Tool(t.Context(), h.conf, class, args...)
	expect.NoError(t, err)
	return cmd
}

// shell returns hdfs dfs with arguments.
func (h hadoop) shell(t testing.TB, args ...string) *exec.Cmd {
	return h.tool(t, "org.apache.hadoop.fs.FsShell", append([]string{"-Ddfs.replication=1"}, args...)...)
}

// distcp returns hadoop distcp with one mapper, at 64 KiB a second.
func (h hadoop) distcp(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	return h.tool(t, "org.apache.hadoop.tools.DistCp", append([]string{"-Ddfs.replication=1", "-Dmapreduce.framework.name=local",
		"-Dhadoop.tmp.dir=" + dir, "-Dmapreduce.jobtracker.staging.root.dir=file://" + dir, "-m", "1", "-bandwidth", "0.0625"}, args...)...)
}

// open starts a node that serves version 1 of a directory of HDFS.
func (h hadoop) open(t testing.TB, name string, v version) *tree {
	t.Helper()
	h.root += "/" + name
	root := t.TempDir()
	x := &tree{hadoop: h, staging: h.root + "/staging/2", local: v.next().write(t, filepath.Join(root, "2"))}
	first := v.write(t, filepath.Join(root, "1"))
	h.put(t, first, h.path("1"))
	x.scene = open(t, configure(t, h.root+"/source", ""), v)
	return x
}

// TestHDFS copies versions to HDFS.
func TestHDFS(t *testing.T) {
	t.Parallel()
	java := harness.Start(t)
	r := java.Do(t, "dfs start")
	h := hadoop{Harness: java, conf: r["conf"], root: "hdfs://" + r["nn"]}
	const part = 100 << 10
	even := version{generation: 1, parts: 6, size: part}
	slow := version{generation: 1, parts: 5, size: part, slow: 8 * part, marker: true}
	distcp := func(options ...string) func(x *tree) {
		return func(x *tree) {
			x.put(x, x.local, x.staging)
			x.copied("distcp", func() { run(x, x.distcp(x, append(options, x.staging, x.path("2"))...)) })
		}
	}
	put := func(x *tree) {
		var names []string
		for p := range x.old.parts {
			names = append(names, partName(p))
		}
		x.copied("put", func() { run(x, x.shell(x, "-put", pipes(x, x.local, names, partName(2)), x.path("2"))) })
	}
	for i, c := range []struct {
		name string
		data version
		copy func(x *tree)
	}{
		{"distcp-p without a marker", even, distcp("-p")},
		{"distcp with a marker and a slow file", slow, distcp()},
		{"put without a marker and with a slow file", even, put},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := h.open(process.Recap(t), fmt.Sprint(i), c.data)
			c.copy(x)
			x.waitWhole(2)
			x.judge(false)
			x.quiet()
		})
	}
	t.Run("in place", func(t *testing.T) {
		t.Parallel()
		x := h.open(process.Recap(t), "in-place", even)
		x.put(t, x.local, x.path("2"))
		x.waitWhole(2)
		third := even.next().next().write(t, filepath.Join(t.TempDir(), "3"))
		x.put(t, third, x.staging)
		x.copied("distcp", func() { run(t, x.distcp(t, "-overwrite", x.staging, x.path("2"))) })
		x.waitWhole(3)
		x.judge(false)
		x.differs()
	})
}
