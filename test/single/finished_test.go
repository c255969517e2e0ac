//go:build integration

package single

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// buildBlocks runs sequins build, which must succeed.
func buildBlocks(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(process.Binary(t), append([]string{"build"}, args...)...)
	cmd.Env = append(os.Environ(), "SEQUINS_SETTLE=0s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %q: %v\n%s", args, err, out)
	}
}

// TestDamagedFinishedBlocks flips a byte at random places of a finished version. The node reports an error of it, and never
// serves another value than the version's.
func TestDamagedFinishedBlocks(t *testing.T) {
	t.Parallel()
	jobs, to := t.TempDir(), t.TempDir()
	writeVersion(t, jobs, "db", "1", 4, 3000, big("1"))
	conf := process.Config{Source: to, Store: filepath.Join(t.TempDir(), "store"), Extra: `refresh_period = "100ms"` + "\n" + `settle = "0s"`}
	n := process.Start(t, conf)
	const rounds = 12
	for i := range rounds {
		db := fmt.Sprintf("db%d", i)
		whole := filepath.Join(t.TempDir(), "db", "1")
		buildBlocks(t, filepath.Join(jobs, "db", "1"), whole)
		names, err := filepath.Glob(filepath.Join(whole, "*.*"))
		if err != nil || len(names) != 5 {
			t.Fatal(names, err)
		}
		flip(t, names[i%5])
		expect.NoError(t, os.MkdirAll(filepath.Join(to, db), 0o755))
		expect.NoError(t, os.Rename(whole, filepath.Join(to, db, "1")))
		n.WaitFor(t, db+" is in ERROR", func() bool { // or its manifest, with another last byte, is that of a build that goes on
			return n.Health(t)[db]["1"].State == "ERROR" || process.LogHas(n.Log(), "version is not complete yet", "db="+db+" ", "_BLOCKS.json is truncated")
		})
		if r := n.Get(t, "/"+db+"/key-000007"); r.Code == http.StatusOK {
			t.Errorf("%s of %s is damaged, and a value is served", names[i%5], db)
		}
	}
	if text := n.Log(); !strings.Contains(text, "part-0000") || !strings.Contains(text, "_BLOCKS.json: the finished version is damaged") {
		t.Error("the log does not name the damaged files")
	}
}

// flip changes a random byte of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	expect.NoError(t, err)
	defer f.Close()
	data, err := io.ReadAll(f)
	expect.NoError(t, err)
	at := rand.IntN(len(data))
	if _, err := f.WriteAt([]byte{data[at] ^ byte(1+rand.IntN(255))}, int64(at)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: byte %d of %d", filepath.Base(path), at, len(data))
}

// TestBuildKilled kills builds at random moments. A node that watches the target serves nothing of what they leave, and the
// version of the next build.
func TestBuildKilled(t *testing.T) {
	t.Parallel()
	jobs, to := t.TempDir(), t.TempDir()
	writeVersion(t, jobs, "db", "1", 40, 8_000, big("1"))
	from := filepath.Join(jobs, "db", "1")
	n := process.Start(t, process.Config{Source: to, Store: filepath.Join(t.TempDir(), "store"), Extra: `refresh_period = "50ms"`})
	const rounds = 8
	for i := range rounds {
		version := fmt.Sprintf("%02d", i)
		target := filepath.Join(to, "db", version)
		cmd := exec.Command(process.Binary(t), "build", from, target)
		cmd.Env = append(os.Environ(), "SEQUINS_SETTLE=0s")
		expect.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if err := killAfter(cmd, ended, filepath.Join(to, "db", "."+version+".building"), rand.IntN(42)); err != nil {
			if _, err := os.Stat(target); err != nil { // it was not killed at its very end
				buildBlocks(t, from, target)
			}
		}
		n.WaitCurrent(t, "db", version)
		key, value := big("1")(i * 900)
		if r := n.Get(t, "/db/"+key); string(r.Body) != value {
			t.Fatalf("%s is %.50q", key, r.Body)
		}
	}
	if text := n.Log(); strings.Contains(text, "level=ERROR") {
		t.Errorf("a build that was killed is more than nothing:\n%s", text)
	}
}

// killAfter kills a build when it has written some files, and returns how it ended.
func killAfter(cmd *exec.Cmd, ended <-chan error, dir string, files int) error {
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		if there, _ := os.ReadDir(dir); len(there) >= files {
			_ = cmd.Process.Kill()
			return <-ended
		}
	}
}

// TestCopiedFinishedBlocks copies a finished version in the order of the names, as cp does: the manifest and _SUCCESS before
// the blocks. The version is served when it is whole, and not before.
func TestCopiedFinishedBlocks(t *testing.T) {
	t.Parallel()
	jobs, to := t.TempDir(), t.TempDir()
	writeVersion(t, jobs, "db", "1", 4, 3000, big("1"))
	built := filepath.Join(t.TempDir(), "db", "1")
	buildBlocks(t, filepath.Join(jobs, "db", "1"), built)
	n := process.Start(t, process.Config{Source: to, Store: filepath.Join(t.TempDir(), "store"), Extra: `refresh_period = "50ms"` + "\n" + `settle = "0s"`})
	target := filepath.Join(to, "db", "1")
	expect.NoError(t, os.MkdirAll(target, 0o755))
	for _, name := range []string{"_BLOCKS.json", "_SUCCESS", "part-00000.block", "part-00001.block", "part-00002.block", "part-00003.block"} {
		data, err := os.ReadFile(filepath.Join(built, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(target, name), data, 0o644)
		}
		expect.NoError(t, err)
		if name == "part-00001.block" {
			n.WaitFor(t, "a block is missed", func() bool { return strings.Contains(n.Log(), "_BLOCKS.json lists part-00002.block") })
		}
	}
	n.WaitCurrent(t, "db", "1")
	for i := range 3000 {
		key, value := big("1")(i)
		if r := n.Get(t, "/db/"+key); string(r.Body) != value {
			t.Fatalf("%s is %.50q", key, r.Body)
		}
	}
}
