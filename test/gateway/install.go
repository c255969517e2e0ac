package gateway

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sequins/test/filelock"
	"sequins/test/process"
)

// installTime bounds an installation.
const installTime = 15 * time.Minute

// Install returns the path of a program of Go at a version. It builds it outside of this module, once for all test packages and
// runs. By -trimpath it shares the compiled standard library with sequins. What it imports beside that is not optimized: that takes two
// thirds of the time, and the servers are as fast by BenchmarkLoad of test/s3.
func Install(name, version, pkg string) (string, error) {
	return Cached(name+"-"+version, func(dir string) (string, error) {
		args := []string{"install", "-trimpath", "-ldflags=-w"}
		for _, host := range []string{"github.com", "cloud.google.com", "google.golang.org"} {
			args = append(args, "-gcflags="+host+"/...=-N -l -dwarf=false")
		}
		err := Command(dir, []string{"GOBIN=" + dir, "CGO_ENABLED=0", "GOFLAGS="}, "go", append(args, pkg+"@"+version)...)
		return filepath.Join(dir, name), err
	})
}

// Command runs a command that installs something in a directory.
func Command(dir string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir // not in our module
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// Cached returns the path of a file or directory in the cache of this working tree. If it is not there, it is made in a
// temporary directory, whose part that make returns gets the name. One process makes it at a time.
func Cached(name string, make func(dir string) (made string, err error)) (string, error) {
	cache := filepath.Join(process.Root(), ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := filelock.Lock(filepath.Join(cache, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(cache, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	dir, err := os.MkdirTemp(cache, name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made, err := make(dir)
	if err != nil {
		return "", err
	}
	return path, os.Rename(made, path)
}
