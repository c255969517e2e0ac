//go:build integration

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/test/harness"
	"sequins/test/process"
)

// What can be asked for after -args. The defaults fit into a few minutes on two cores.
var (
	allKeys  = flag.Int("keys", 100_000, "keys of the version of which each is read from every node")
	outage   = flag.Duration("outage", 25*time.Second, "how long all of ZooKeeper is gone")
	seed     = flag.Uint64("seed", 0, "what the nemesis decides by; 0: a new one each time")
	upgrades = flag.Int("upgrades", 20, "versions that are published under the nemesis")
	former   = flag.String("former", "", "the program of an older release, for TestRollingUpgrade; empty: this one")
)

// inside is set in the environment of the second process.
const inside = "SEQUINS_TEST_NETWORK"

func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	if err := makeNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Most of what the parallel tests do is wait, so several run at a time, however few cores there are.
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	const toxiproxy = "github.com/Shopify/toxiproxy/v2" // what it starts does not always end with it
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).read"),
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).write"),
		goleak.IgnoreAnyFunction(toxiproxy+"/toxics.(*ToxicStub).Run"))
}

// again runs this program with the same arguments in a network of its own. What
// may have to be fetched from outside is built before.
func again() int {
	dir, err := os.MkdirTemp("", "sequins-binary-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := os.Getenv(process.Override)
	if binary == "" {
		binary = filepath.Join(dir, "sequins")
		err = process.Build(binary)
	}
	if err = errors.Join(err, harness.Build()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1", process.Override+"="+binary)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = ownNetwork()
	runtime.LockOSThread() // Pdeathsig follows the thread that started the process
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(1, exit.ExitCode())
	case err != nil:
		fmt.Fprintf(os.Stderr, "no network namespace of our own: %v; they need root, or user namespaces for everybody\n", err)
		return 1
	}
	return 0
}

// ownNetwork starts a process in a new network namespace; for anybody but root
// that takes a user namespace in which he is root.
func ownNetwork() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}
