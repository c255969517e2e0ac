//go:build integration

package copies

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// A disk is the scene of a node whose source is a directory.
type disk struct {
	*scene
	from string // version 2, elsewhere
	to   string // where it is copied to
}

// onDisk starts a node that serves version 1 of a directory.
func onDisk(t testing.TB, v version) *disk {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "source")
	v.write(t, filepath.Join(dir, db, "1"))
	return &disk{
		scene: open(t, configure(t, dir, ""), v),
		from:  v.next().write(t, filepath.Join(root, "from", "2")),
		to:    filepath.Join(dir, db, "2"),
	}
}

// restart starts the node again, after its end, with another reader.
func (d *disk) restart() {
	d.Helper()
	d.node = process.Start(d, d.config)
	d.reader = read(d, d.node, db, d.keys)
}

// names returns the names of the files of version 2, in their order.
func (d *disk) names() (names []string) {
	d.Helper()
	entries, err := os.ReadDir(d.from)
	if err != nil {
		d.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// inOrder copies the files by cp, one after the other, a second apart.
func (d *disk) inOrder(options string, names ...string) {
	d.Helper()
	run(d, tool(d, "sh", append([]string{"-c", `from=$1 to=$2; shift 2; mkdir -p "$to"; for f; do cp ` + options + ` "$from/$f" "$to/"; sleep 1; done`, "sh", d.from, d.to}, names...)...))
}

// inOrderWithPause is inOrder with a pause of longer than settle after the third file.
func (d *disk) inOrderWithPause() {
	d.Helper()
	names := d.names()
	d.inOrder("", names[:3]...)
	d.stay(3 * settle)
	d.inOrder("", names[3:]...)
}

// sameTick copies two files so fast that both have the same time: it tries again until they do, elsewhere, and renames the directory
// then.
func (d *disk) sameTick(first, second string) {
	d.Helper()
	aside := filepath.Join(filepath.Dir(d.from), "aside")
	for range 1000 {
		a, err := os.ReadFile(filepath.Join(d.from, first))
		b, failed := os.ReadFile(filepath.Join(d.from, second))
		err = errors.Join(err, failed, os.RemoveAll(aside), os.Mkdir(aside, 0o755), os.WriteFile(filepath.Join(aside, first), a, 0o644),
			os.WriteFile(filepath.Join(aside, second), b, 0o644))
		if err != nil {
			d.Fatal(err)
		}
		if changed(d, filepath.Join(aside, first)) == changed(d, filepath.Join(aside, second)) {
			if err := os.Rename(aside, d.to); err != nil {
				d.Fatal(err)
			}
			return
		}
	}
	d.Fatal("no two files have the same time")
}

// changed returns the ctime of a file.
func changed(t testing.TB, path string) syscall.Timespec {
	t.Helper()
	var info syscall.Stat_t
	expect.NoError(t, syscall.Stat(path, &info))
	return info.Ctim
}

// rsync returns rsync -a at 64 KiB a second.
func (d *disk) rsync(options ...string) *exec.Cmd {
	return tool(d, "rsync", append(append([]string{"-a", "--bwlimit=64"}, options...), d.from+"/", d.to)...)
}

// recursive copies by one cp -r, from pipes made in an order: cp reads them in that one on most file systems.
func (d *disk) recursive(order []string) {
	d.Helper()
	run(d, tool(d, "cp", "-r", "--copy-contents", pipes(d, d.from, order, ""), d.to))
}

// stall runs a command, and stops it for longer than settle as soon as a file is there.
func (d *disk) stall(cmd *exec.Cmd, pattern string) {
	d.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	process.Eventually(d, pattern+" is there", func() bool {
		found, _ := filepath.Glob(filepath.Join(d.to, pattern))
		return len(found) > 0
	})
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := syscall.Kill(-cmd.Process.Pid, s); err != nil {
			d.Fatal(err)
		}
		d.mark("%v", s)
		if s == syscall.SIGSTOP {
			d.stay(3 * settle)
		}
	}
	if err := cmd.Wait(); err != nil {
		d.Fatal(err)
	}
}

// TestDisk copies versions to a directory by tools that never pause for longer than settle, or whose temporary file is there while
// they do.
func TestDisk(t *testing.T) {
	const part = 64 << 10
	small := version{generation: 1, parts: 8, size: 4 << 10}
	even := version{generation: 1, parts: 8, size: part}
	slow := version{generation: 1, parts: 5, size: part, slow: 10 * part}
	marked := func(v version) version {
		v.marker = true
		return v
	}
	for _, c := range []struct {
		name string
		data version
		copy func(d *disk)
	}{
		{"cp -r with the marker in the middle", marked(small), func(d *disk) {
			names := d.names()
			d.recursive(slices.Concat(names[1:4], names[:1], names[4:]))
		}},
		{"in order of names, of finished blocks, and a pause", version{generation: 1, parts: 6, size: 4 << 10, built: true}, (*disk).inOrderWithPause},
		{"in order of names", marked(small), func(d *disk) { d.inOrder("", d.names()...) }},
		{"in order of names with old times", marked(small), func(d *disk) { d.inOrder("-p", d.names()...) }},
		{"in order of names with old times and without a marker", small, func(d *disk) { d.inOrder("-p", d.names()...) }},
		{"the marker and a file in one tick of the clock", marked(small), func(d *disk) {
			d.sameTick("_SUCCESS", partName(0))
			d.stay(settle / 2)
			d.inOrder("", d.names()[2:]...)
		}},
		{"in order of names with a marker that lists the files, and a pause", version{generation: 1, parts: 6, size: 4 << 10, lists: true}, (*disk).inOrderWithPause},
		{"rsync with a slow file", marked(slow), func(d *disk) { run(d, d.rsync()) }},
		{"rsync in place, with a slow file and without a marker", slow, func(d *disk) { run(d, d.rsync("--inplace")) }},
		{"rsync stopped in a file", marked(even), func(d *disk) { d.stall(d.rsync(), ".part-00003.??????") }},
		{"rsync stopped in a file, without a marker", even, func(d *disk) { d.stall(d.rsync(), ".part-00003.??????") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := onDisk(process.Recap(t), c.data)
			d.copied(c.name, func() { c.copy(d) })
			d.waitWhole(2)
			d.judge(false)
			d.quiet()
		})
	}
}

// TestTemporaryNames copies versions whose third file has a temporary name for longer than settle, each to a database of its own.
func TestTemporaryNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"rsync":  ".part-00002.Ab3dEf",
		"hdfs":   "part-00002._COPYING_",
		"distcp": ".distcp.tmp.attempt_local1_0001_m_000000_0.1551675960000",
		"rclone": "part-00002.3f2a1b0c.partial",
		"hidden": ".part-00002.tmp",
		"flink":  ".part-00002.inprogress.0b1c7d3e-5a43-4f0f-9f0a-6a3a6c0f2b11",
	}
	v := version{generation: 1, parts: 3, size: 4 << 10}
	root := t.TempDir()
	dir := filepath.Join(root, "source")
	for base := range names {
		v.write(t, filepath.Join(dir, base, "1"))
	}
	from := v.next().write(t, filepath.Join(root, "from"))
	node := process.Start(t, configure(t, dir, ""))
	scenes := map[string]*scene{}
	for base := range names {
		node.WaitCurrent(t, base, "1")
		scenes[base] = &scene{TB: t, node: node, reader: read(t, node, base, v.keys()), old: v}
	}
	for base, name := range names {
		node.WaitFor(t, base+" is read", func() bool { return scenes[base].whole(1) })
		to := filepath.Join(dir, base, "2")
		run(t, tool(t, "sh", "-c", `mkdir "$2" && cp "$1"/part-0000[01] "$2" && head -c 500 "$1/part-00002" > "$2/$3"`, "sh", from, to, name))
		scenes[base].mark("%s is being written", name)
	}
	<-time.After(3 * settle)
	for base, name := range names {
		to := filepath.Join(dir, base, "2")
		run(t, tool(t, "sh", "-c", `cp "$1/part-00002" "$2/$3" && mv "$2/$3" "$2/part-00002"`, "sh", from, to, name))
		scenes[base].mark("%s has its name", partName(2))
	}
	for base, s := range scenes {
		t.Run(base, func(t *testing.T) {
			s.TB = t
			s.waitWhole(2)
			s.judge(false)
		})
	}
}

// TestPauses copies versions by writers that pause for longer than settle, so that a part of the version is served. The node sees the
// rest, says so, and serves all.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name, options string
		marker        bool
		restart       bool
	}{
		{"without a marker and with old times", "-p", false, false},
		{"with an old marker", "-p", true, false},
		{"while the node is restarted", "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := onDisk(process.Recap(t), version{generation: 1, parts: 6, size: 4 << 10, marker: c.marker})
			names := d.names()
			half := len(names) / 2
			d.inOrder(c.options, names[:half]...)
			d.node.WaitFor(t, "a part of version 2 is served", func() bool { return d.partial(2) })
			d.mark("the writer goes on")
			if c.restart {
				d.node.Stop(t)
				d.end()
			}
			d.inOrder(c.options, names[half:]...)
			d.mark("the last file is there")
			if c.restart {
				d.restart()
			}
			d.waitWhole(2)
			d.judge(true)
			d.differs()
		})
	}
}

// TestInPlace replaces the files of a served version by others of the same sizes.
func TestInPlace(t *testing.T) {
	for _, c := range []struct {
		name, options string
		marker        bool
	}{
		{"with a marker", "", true},
		{"without a marker and with the times of before", "-p", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := onDisk(process.Recap(t), version{generation: 1, parts: 6, size: 4 << 10, marker: c.marker})
			run(t, tool(t, "cp", "-rp", d.from, d.to))
			d.waitWhole(2)
			d.old.next().next().write(t, d.from)
			d.copied("the replacement", func() { d.inOrder(c.options, d.names()...) })
			d.waitWhole(3)
			d.judge(false)
			d.differs()
		})
	}
}
