package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/input/finished"
	"sequins/load/build"
	"sequins/source/local"
	"sequins/test/expect"
)

func TestBuild(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	from, to := versionOf(t, source), filepath.Join(dir, "built", "db", "1")
	r := sequins(t, "build", from, to)
	r.wants(t, exitOK)
	if !strings.HasPrefix(r.stdout, "built ") || !strings.Contains(r.stdout, " of "+from+" in "+to+"\n") {
		t.Errorf("it said %s", r.stdout)
	}
	sequins(t, "verify", to).wants(t, exitOK)
	damaged := filepath.Join(dir, "damaged", "db", "1")
	expect.NoError(t, os.CopyFS(damaged, os.DirFS(to)))
	expect.NoError(t, os.Remove(damaged+"/part-00000.block"))
	if r := sequins(t, "versions", "--source", filepath.Join(dir, "damaged")); !strings.Contains(r.stdout, "no: ") || !strings.Contains(r.stdout, "part-00000.block") {
		t.Errorf("a block is missing: %+v", r)
	}
	spoil(t, damaged+"/part-00001.block", 40)
	sequins(t, "verify", damaged).wants(t, exitUnreadable, "bad: "+damaged+"/part-00001.block", "bad: "+damaged+": part-00000.block: ", "sequins: 2 of 4 files are bad")
	sequins(t, "build", from, to).wants(t, exitFailure, "sequins: "+to+": the target is occupied: it exists, and versions must not change")
	conf := filepath.Join(dir, "sequins.conf")
	writeFile(t, conf, "source = \"/nowhere\"\n[storage]\ncompression = \"zstd\"\n[db.words]\npartitioner = \"string\"\n")
	t.Setenv("SEQUINS_STORAGE_BLOCK_SIZE", "8192")
	sequins(t, "build", "--config", conf, from, filepath.Join(dir, "built", "words", "2")).wants(t, exitOK)
	manifest, err := os.ReadFile(filepath.Join(dir, "built", "words", "2", "_BLOCKS.json"))
	expect.NoError(t, err)
	if !strings.Contains(string(manifest), `"partitioner":"string"`) {
		t.Errorf("another partitioner in %s", manifest)
	}
	b := openFile(t, filepath.Join(dir, "built", "words", "2", "part-00000.block")).(*block)
	if p := b.r.Properties(); p.Compression != "zstd" || p.BlockSize != 8192 {
		t.Errorf("another compression or block size: %+v", p)
	}
}

// Finished blocks are compared with their manifest: by verify, and what the listing tells by versions, too.
func TestVerifyFinished(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "built", "db", "1")
	sequins(t, "build", versionOf(t, demoSource(t, dir)), good).wants(t, exitOK)
	edit := func(f func(m *finished.Manifest)) func(dir string) {
		return func(dir string) {
			data, err := os.ReadFile(dir + "/_BLOCKS.json")
			expect.NoError(t, err)
			m, err := finished.Parse(data, "")
			expect.NoError(t, err)
			f(m)
			data, err = m.Encode()
			expect.NoError(t, err)
			writeFile(t, dir+"/_BLOCKS.json", string(data))
		}
	}
	for what, test := range map[string]struct {
		change       func(dir string)
		want, listed string
	}{
		"another hash":       {edit(func(m *finished.Manifest) { m.Blocks[1].Hash = strings.Repeat("0", 32) }), "part-00001.block: the finished version is damaged: it has the hash", "yes"},
		"other records":      {edit(func(m *finished.Manifest) { m.Blocks[1].Records++ }), "part-00001.block: the finished version is damaged: it has the hash", "yes"},
		"another size":       {edit(func(m *finished.Manifest) { m.Blocks[1].Size-- }), "part-00001.block: the finished version is damaged: it has", "part-00001.block"},
		"an extra block":     {func(dir string) { writeFile(t, dir+"/part-00077.block", "") }, "part-00077.block", "part-00077.block"},
		"a missing block":    {func(dir string) { expect.NoError(t, os.Remove(dir+"/part-00001.block")) }, "part-00001.block: the finished version is incomplete", "part-00001.block"},
		"a damaged manifest": {func(dir string) { spoil(t, dir+"/_BLOCKS.json", 60) }, "_BLOCKS.json", "_BLOCKS.json"},
		"a directory among them": {func(dir string) {
			expect.NoError(t, os.CopyFS(dir+"/part-00000.block.bak", os.DirFS(good)))
			edit(func(m *finished.Manifest) { m.Blocks[1].Hash = strings.Repeat("0", 32) })(dir)
		}, "/db/1/part-00001.block: the finished version is damaged: it has the hash", "part-00000.block.bak"},
	} {
		source := t.TempDir()
		of := filepath.Join(source, "db", "1")
		expect.NoError(t, os.CopyFS(of, os.DirFS(good)))
		test.change(of)
		if r := sequins(t, "verify", of); r.code != exitUnreadable || !strings.Contains(r.stderr, test.want) {
			t.Errorf("%s: verify: %+v, want %s", what, r, test.want)
		}
		if r := sequins(t, "versions", "--source", source); !strings.Contains(r.stdout+r.stderr, test.listed) {
			t.Errorf("%s: versions: %+v, want %s", what, r, test.listed)
		}
	}
}

// versionOf returns the directory of the only version of a source.
func versionOf(t *testing.T, source string) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(source, "*", "[0-9a-zA-Z]*"))
	expect.NoError(t, err)
	if len(dirs) != 1 {
		t.Fatalf("versions %q", dirs)
	}
	return dirs[0]
}

func TestBuildUsage(t *testing.T) {
	from := "/nowhere/db/1"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{from}, exitUsage, "sequins: accepts 2 arg(s), received 1; see sequins build --help"},
		{[]string{from, "s3://bucket/1"}, exitUsage, `sequins: DST: "s3://bucket/1" is not the directory of a version: <source>/<db>/<version>`},
		{[]string{from, "s3://bucket/db/1"}, exitUsage, "sequins: DST: s3://bucket/db/1 is not a directory of this machine: build into one, and copy it with "},
		{[]string{"", from}, exitUsage, `sequins: SRC: "" is not the directory of a version`},
		{[]string{"/", from}, exitUsage, `sequins: SRC: "/" is not the directory of a version`},
		{[]string{"/a/healthz/1", from}, exitUsage, `sequins: SRC: "/a/healthz/1" is not`},
		{[]string{"--config", "/nowhere/sequins.conf", from, "/nowhere/db/2"}, exitFailure, "sequins: "},
		{[]string{from, filepath.Join(t.TempDir(), "db", "1")}, exitFailure, "sequins: "},
	} {
		sequins(t, append([]string{"build"}, tt.args...)...).wants(t, tt.code, tt.want)
	}
}

// An interrupted build removes what it wrote.
func TestBuildInterrupted(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	_, err := writeDemo(source, demoFirst)
	expect.NoError(t, err)
	built := filepath.Join(dir, "built", "db")
	cmd := command(t, "build", versionOf(t, source), filepath.Join(built, "1"))
	wait := begin(t, cmd)
	go func() {
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if left, _ := os.ReadDir(built); len(left) > 0 { // it has begun
				_ = cmd.Process.Signal(syscall.SIGTERM)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	r := wait()
	left, _ := os.ReadDir(built)
	switch {
	case r.code == exitFailure && strings.Contains(r.stderr, "sequins: interrupted: what was written is removed") && len(left) == 0:
	case r.code == exitOK && len(left) == 1: // it was faster
	default:
		t.Errorf("code %d, left %v, %s", r.code, left, r.stderr)
	}
}

// An interrupt does not hide an error of a file: nothing may have been removed.
func TestBuildInterruptedAfterAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	src, err := local.New(filepath.Dir(file))
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := runBuild(ctx, io.Discard, build.Job{From: build.Place{Source: src, DB: "db", Version: "1"}, To: file + "/db/1"}); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}

// TestBuildWaits: a build does not make a finished version of files that are still being written.
func TestBuildWaits(t *testing.T) {
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "built", "db", "1")
	_, err := writeDemo(source, demoFirst)
	expect.NoError(t, err)
	from := versionOf(t, source)
	run := func(then func()) result {
		cmd := command(t, "build", from, target)
		cmd.Env = append(cmd.Env, "SEQUINS_SETTLE=1s")
		stderr, err := os.Create(filepath.Join(dir, "stderr"))
		expect.NoError(t, err)
		defer stderr.Close()
		cmd.Stderr = stderr
		expect.NoError(t, cmd.Start())
		text := func() string {
			data, err := os.ReadFile(stderr.Name())
			expect.NoError(t, err)
			return string(data)
		}
		expect.Eventually(t, "it waits", func() bool { return strings.Contains(text(), "waiting 1s (settle)") })
		then()
		_ = cmd.Wait()
		return result{code: cmd.ProcessState.ExitCode(), stderr: text()}
	}
	r := run(func() { writeFile(t, filepath.Join(from, "part-r-99999"), "x") })
	if r.code != exitFailure || !strings.Contains(r.stderr, "its files have changed within 1s") {
		t.Errorf("a file comes: code %d, %s", r.code, r.stderr)
	}
	if left, _ := os.ReadDir(target); len(left) > 0 {
		t.Errorf("it has written %v", left)
	}
	expect.NoError(t, os.Remove(filepath.Join(from, "part-r-99999")))
	if r := run(func() {}); r.code != exitOK {
		t.Errorf("nothing changes: code %d, %s", r.code, r.stderr)
	}
}
