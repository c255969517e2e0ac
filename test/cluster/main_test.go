//go:build integration

package cluster

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/test/harness"
	"sequins/test/netns"
	"sequins/test/process"
)

// What can be asked for after -args. The defaults fit into a few minutes on two cores.
var (
	allKeys   = flag.Int("keys", 20_000, "keys of the version of which each is read from every node")
	outage    = flag.Duration("outage", 10*time.Second, "how long all of ZooKeeper is gone")
	seed      = flag.Uint64("seed", 0, "what the nemesis decides by; 0: a new one each time")
	faultsFor = flag.Duration("faults", 0, "how long TestAllFaults goes on; 0: until each fault has come")
	upgrades  = flag.Int("upgrades", 10, "versions that are published under the nemesis")
	former    = flag.String("former", "", "the program of an older release, for TestRollingUpgrade; empty: this one")
)

func TestMain(m *testing.M) {
	if !netns.Inside() {
		os.Exit(harness.Again())
	}
	if err := netns.Bridge(clientIP, zookeeperIP); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	process.Parallel(6)
	const toxiproxy = "github.com/Shopify/toxiproxy/v2" // what it starts does not always end with it
	goleak.VerifyTestMain(tests{m},
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).read"),
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).write"),
		goleak.IgnoreAnyFunction(toxiproxy+"/toxics.(*ToxicStub).Run"))
}

// tests are all tests, and the end of what they share.
type tests struct{ *testing.M }

// Run implements goleak.TestingM.
func (m tests) Run() int {
	code := m.M.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
