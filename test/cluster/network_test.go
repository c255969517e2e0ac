//go:build integration

package cluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/netns"
	"sequins/test/process"
)

// The addresses on this side of the bridge: clients come from the first;
// ZooKeeper is behind the second.
const (
	clientIP    = "10.77.0.1"
	zookeeperIP = "10.77.0.2"
)

// nowhere is a hardware address of nobody.
const nowhere = "02:00:00:00:00:ff"

func run(command string) error { return netns.Run(command) }

// A host is a network namespace with one address.
type host struct {
	*netns.Host
	ip   string
	lost map[string]int // addresses that its packets do not reach
}

// newHost makes a host that is gone when the test ends.
func newHost(t testing.TB) *host {
	t.Helper()
	h := netns.NewHost(t)
	return &host{Host: h, ip: h.IP, lost: map[string]int{}}
}

func (h *host) prefix() []string { return h.Prefix() }

func (h *host) prefixed(command string) string { return h.Prefixed(command) }

// lose has all packets to an address lost on their way, until find has been
// called as often.
func (h *host) lose(t testing.TB, ip string) {
	t.Helper()
	if h.lost[ip]++; h.lost[ip] > 1 {
		return
	}
	expect.NoError(t, run(h.prefixed("ip neigh replace "+ip+" lladdr "+nowhere+" dev eth0 nud permanent")))
}

func (h *host) find(t testing.TB, ip string) {
	t.Helper()
	if h.lost[ip]--; h.lost[ip] > 0 {
		return
	}
	expect.NoError(t, run(h.prefixed("ip neigh del "+ip+" dev eth0")))
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
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", h.PID()))
	expect.NoError(t, err)
	var names []string
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if words[0] != "Tcp:" {
			continue
		}
		for i, name := range names {
			if name == "ActiveOpens" {
				n, err := strconv.Atoi(words[i])
				expect.NoError(t, err)
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
