//go:build integration

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"sequins/test/process"
)

// The addresses on this side of the bridge: clients come from the first;
// ZooKeeper is behind the second.
const (
	clientIP    = "10.77.0.1"
	zookeeperIP = "10.77.0.2"
)

// Hardware addresses: of the bridge, which would otherwise change its own when a
// host is added, and be lost to the others; and of nobody.
const (
	bridge  = "02:00:00:00:00:01"
	nowhere = "02:00:00:00:00:ff"
)

func makeNetwork() error {
	for _, args := range []string{
		"link set lo up",
		"link add bridge0 address " + bridge + " type bridge",
		"addr add " + clientIP + "/16 dev bridge0",
		"addr add " + zookeeperIP + "/16 dev bridge0",
		"link set bridge0 up",
	} {
		if err := run("ip " + args); err != nil {
			return err
		}
	}
	return nil
}

func run(command string) error {
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// A host is a network namespace with one address. A process that does nothing
// keeps it alive.
type host struct {
	ip     string
	keeper *exec.Cmd
	lost   map[string]int // addresses that its packets do not reach
}

var hosts atomic.Int64

// newHost makes a host that is gone when the test ends.
func newHost(t testing.TB) *host {
	t.Helper()
	number := hosts.Add(1)
	h := &host{ip: fmt.Sprintf("10.77.%d.%d", 1+number/250, 1+number%250), keeper: exec.Command("sleep", "infinity"), lost: map[string]int{}}
	h.keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	runtime.LockOSThread()
	err := h.keeper.Start()
	runtime.UnlockOSThread()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.keeper.Process.Kill()
		h.keeper.Wait()
	})
	link := fmt.Sprintf("host%d", number)
	for _, command := range []string{
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", link, h.keeper.Process.Pid),
		fmt.Sprintf("ip link set %s master bridge0 up", link),
		h.prefixed("ip addr add " + h.ip + "/16 dev eth0"),
		h.prefixed("ip link set eth0 up"),
		h.prefixed("ip link set lo up"),
	} {
		if err := run(command); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// prefix is what to put in front of a command for it to run on the host.
func (h *host) prefix() []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", h.keeper.Process.Pid), "--"}
}

func (h *host) prefixed(command string) string { return strings.Join(h.prefix(), " ") + " " + command }

// lose has all packets to an address lost on their way, until find has been
// called as often.
func (h *host) lose(t testing.TB, ip string) {
	t.Helper()
	if h.lost[ip]++; h.lost[ip] > 1 {
		return
	}
	if err := run(h.prefixed("ip neigh replace " + ip + " lladdr " + nowhere + " dev eth0 nud permanent")); err != nil {
		t.Fatal(err)
	}
}

func (h *host) find(t testing.TB, ip string) {
	t.Helper()
	if h.lost[ip]--; h.lost[ip] > 0 {
		return
	}
	if err := run(h.prefixed("ip neigh del " + ip + " dev eth0")); err != nil {
		t.Fatal(err)
	}
}

// cut separates two hosts: what one sends to the other is lost.
func cut(t testing.TB, a, b *host) {
	t.Helper()
	a.lose(t, b.ip)
	b.lose(t, a.ip)
}

func join(t testing.TB, a, b *host) {
	t.Helper()
	a.find(t, b.ip)
	b.find(t, a.ip)
}

// dialled is how many TCP connections were begun on the host, ever.
func (h *host) dialled(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", h.keeper.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if words[0] != "Tcp:" {
			continue
		}
		for i, name := range names {
			if name == "ActiveOpens" {
				n, err := strconv.Atoi(words[i])
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		names = words
	}
	t.Fatalf("no ActiveOpens in %s", b)
	return 0
}

// The network does what the tests take for granted.
func TestNetwork(t *testing.T) {
	t.Parallel()
	a, b := newHost(t), newHost(t)
	before := a.dialled(t)
	reached := func() bool {
		err := run(a.prefixed("timeout 1 bash -c <>/dev/tcp/" + b.ip + "/9"))
		return err != nil && strings.Contains(err.Error(), "refused") // nobody listens
	}
	process.Eventually(t, "the hosts are joined", reached)
	cut(t, a, b)
	cut(t, b, a)
	join(t, a, b)
	if reached() {
		t.Error("cut twice and joined once, and yet joined")
	}
	join(t, a, b)
	process.Eventually(t, "the hosts are joined again", reached)
	if n := a.dialled(t) - before; n < 3 {
		t.Errorf("%d connections were begun", n)
	}
}
