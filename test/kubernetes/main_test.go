//go:build integration

package kubernetes

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"sequins/test/chart"
	"sequins/test/harness"
	"sequins/test/netns"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(containerVariable); file != "" {
		fmt.Fprintln(os.Stderr, "the container does not start:", becomeContainer(file))
		os.Exit(1)
	}
	if !netns.Inside() {
		os.Exit(again())
	}
	all := []string{nodeIP}
	for number := range int64(maxClusters) {
		ips := addressesOf(number + 1)
		all = append(all, ips.dns, ips.zookeeper, ips.service)
	}
	if err := netns.Bridge(all...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	process.Parallel(4)
	goleak.VerifyTestMain(m)
}

// again runs this program in a network of its own.
func again() int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests need root: containers run as a user of their own")
		return 1
	}
	if _, err := chart.Helm(); err != nil { // while it can be fetched
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return harness.Again()
}
