package gateway

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sequins/test/once"
	"sequins/test/process"
)

// installTime bounds an installation.
const installTime = 15 * time.Minute

// Build returns the path of a server of the module servers, by its package there. By -trimpath it shares with sequins what is
// compiled for both. Most of what it imports beside that is not optimized: that takes two thirds of the time, and the servers are as
// fast by BenchmarkLoad of test/s3.
func Build(pkg string) (string, error) {
	module := filepath.Join(process.Root(), "test", "gateway", "servers")
	dir, err := once.Dir(filepath.Join(process.Root(), ".cache", filepath.Base(pkg)), func(dir string) error {
		// The tag leaves out the client of Google's storage by gRPC, which imports Envoy.
		args := []string{"build", "-o", filepath.Join(dir, "server"), "-trimpath", "-ldflags=-w", "-tags", "disable_grpc_modules"}
		for _, path := range []string{
			"cloud.google.com", "google.golang.org", "github.com/fsouza", "github.com/google", "github.com/googleapis", // of fake-gcs-server
			"github.com/gofiber", "github.com/hashicorp", "github.com/nats-io", "github.com/segmentio", "github.com/valyala", "github.com/versity", // of versitygw
		} {
			args = append(args, "-gcflags="+path+"/...=-N -l -dwarf=false")
		}
		return Command(module, "go", append(args, pkg)...)
	}, module)
	return filepath.Join(dir, "server"), err
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
