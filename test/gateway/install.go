package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sequins/test/filelock"
	"sequins/test/process"
)

// installTime bounds an installation.
const installTime = 15 * time.Minute

// Build returns the path of a server of the module servers, by its package there. By -trimpath it shares with sequins what is
// compiled for both. Most of what it imports beside that is not optimized: that takes two thirds of the time, and the servers are as
// fast by BenchmarkLoad of test/s3.
func Build(pkg string) (string, error) {
	module := filepath.Join(process.Root(), "test", "gateway", "servers")
	return Cached(filepath.Base(pkg), module, func(dir string) (string, error) {
		made := filepath.Join(dir, "server")
		// The tag leaves out the client of Google's storage by gRPC, which imports Envoy.
		args := []string{"build", "-o", made, "-trimpath", "-ldflags=-w", "-tags", "disable_grpc_modules"}
		for _, path := range []string{
			"cloud.google.com", "google.golang.org", "github.com/fsouza", "github.com/google", "github.com/googleapis", // of fake-gcs-server
			"github.com/gofiber", "github.com/hashicorp", "github.com/nats-io", "github.com/segmentio", "github.com/valyala", "github.com/versity", // of versitygw
		} {
			args = append(args, "-gcflags="+path+"/...=-N -l -dwarf=false")
		}
		return made, Command(module, "go", append(args, pkg)...)
	})
}

// Command runs a command that installs something in a directory.
func Command(dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// Cached returns the path of a file or directory in the cache of this working tree that is made of the files of a directory, of. If
// it is not there, it is made in a temporary directory, of which the part that make returns is kept. One process makes it at a time.
func Cached(name, of string, make func(dir string) (made string, err error)) (string, error) {
	sum, files := sha256.New(), os.DirFS(of)
	if err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	}); err != nil {
		return "", err
	}
	name += "-" + hex.EncodeToString(sum.Sum(nil)[:6])
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
