// Package venv makes Python interpreters with pinned packages for tests.
package venv

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sequins/test/filelock"
	"sequins/test/process"
)

// Python returns the interpreter of a venv with the packages of a requirements file, which is made once and kept in
// .cache. Test processes run side by side, so it is made under a lock.
func Python(t testing.TB, requirements string) string {
	t.Helper()
	want, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(process.Root(), ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(want)
	dir := filepath.Join(cache, "python-"+hex.EncodeToString(sum[:6]))
	unlock, err := filelock.Lock(filepath.Join(cache, "python.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	interpreter := filepath.Join(dir, "bin", "python")
	once(t, dir, func() {
		pip := filepath.Join(cache, "pip") // one for all: to install it takes longer than the rest of a venv
		once(t, pip, func() { Run(t, "python3", "-m", "venv", pip) })
		Run(t, "python3", "-m", "venv", "--without-pip", dir)
		// A module is compiled when it is imported. Most are not.
		Run(t, filepath.Join(pip, "bin", "python"), "-m", "pip", "--python", interpreter, "install", "-q", "--disable-pip-version-check",
			"--no-compile", "--only-binary=:all:", "--no-deps", "-r", requirements)
	})
	return interpreter
}

// once makes a directory, unless it is complete.
func once(t testing.TB, dir string, make func()) {
	t.Helper()
	stamp := filepath.Join(dir, "complete")
	if _, err := os.Stat(stamp); err == nil {
		return
	}
	if err := os.RemoveAll(dir); err != nil { // what an attempt before has left
		t.Fatal(err)
	}
	make()
	if err := os.WriteFile(stamp, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Run runs a command, and fails the test with its output if it fails.
func Run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}
