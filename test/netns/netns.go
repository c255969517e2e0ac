// Package netns gives tests a network of their own: Again starts the test program a second time in a new network
// namespace, Bridge makes a bridge in it, and each Host is a namespace with an address of its own behind that bridge.
// Nothing has to be configured on the machine, and nothing is left when the tests end, however they end.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// inside is set in the environment of the second process.
const inside = "SEQUINS_TEST_NETWORK"

// Inside reports whether this is the second process.
func Inside() bool { return os.Getenv(inside) != "" }

// Again runs this program with the same arguments in a network of its own, with additional variables, and returns its exit
// code. What may have to be fetched from outside must be there before.
func Again(env ...string) int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(append(os.Environ(), inside+"=1"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = ownNetwork()
	runtime.LockOSThread() // Pdeathsig follows the thread that started the process
	err := cmd.Run()
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

// ownNetwork starts a process in a new network namespace; for anybody but root that takes a user namespace in which he is
// root.
func ownNetwork() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// The hardware address of the bridge, which would otherwise change its own when a host is added, and be lost to the
// others.
const bridge = "02:00:00:00:00:01"

// Bridge makes the bridge, with addresses of 10.77.0.0/24 on this side of it.
func Bridge(addresses ...string) error {
	commands := []string{"link set lo up", "link add bridge0 address " + bridge + " type bridge"}
	for _, a := range addresses {
		commands = append(commands, "addr add "+a+"/16 dev bridge0")
	}
	for _, args := range append(commands, "link set bridge0 up") {
		if err := Run("ip " + args); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a command whose arguments have no spaces.
func Run(command string) error {
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// A Host is a network namespace with one address. A process that does nothing keeps it alive.
type Host struct {
	IP     string
	keeper *exec.Cmd
}

var hosts atomic.Int64

// NewHost makes a host that is gone when the test ends, if Close has not been called before.
func NewHost(t testing.TB) *Host {
	t.Helper()
	number := hosts.Add(1)
	h := &Host{IP: fmt.Sprintf("10.77.%d.%d", 1+number/250, 1+number%250), keeper: exec.Command("sleep", "infinity")}
	h.keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	runtime.LockOSThread()
	err := h.keeper.Start()
	runtime.UnlockOSThread()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	link := fmt.Sprintf("host%d", number)
	for _, command := range []string{
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", link, h.PID()),
		fmt.Sprintf("ip link set %s master bridge0 up", link),
		h.Prefixed("ip addr add " + h.IP + "/16 dev eth0"),
		h.Prefixed("ip link set eth0 up"),
		h.Prefixed("ip link set lo up"),
	} {
		if err := Run(command); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// Close removes the host and its address, once no process is left on it.
func (h *Host) Close() {
	if h.keeper.ProcessState == nil {
		_ = h.keeper.Process.Kill() // fails if it has ended
		_ = h.keeper.Wait()         // it was killed
	}
}

// PID is a process on the host, for its files below /proc.
func (h *Host) PID() int { return h.keeper.Process.Pid }

// Prefix is what to put in front of a command for it to run on the host.
func (h *Host) Prefix() []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", h.PID()), "--"}
}

// Prefixed is a command with the prefix.
func (h *Host) Prefixed(command string) string { return strings.Join(h.Prefix(), " ") + " " + command }
