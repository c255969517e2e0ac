//go:build integration

package cluster

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sequins/test/balance"
	"sequins/test/expect"
	"sequins/test/process"
)

// balanced sends GETs of random keys to the members of a cluster, through a client that follows /readyz. It checks
// every answer, and that no member answers from an older version than before.
func (c *cluster) balanced() *balance.Client {
	var addrs []string
	for _, m := range c.members {
		addrs = append(addrs, m.addr())
	}
	key := func(n int) string { return c.data.key(n * 7919 % c.data.keys) }
	return balance.Start(balance.Options{
		Addrs: addrs, Rate: 150, Probe: 20 * time.Millisecond,
		Target: func(n int) string { return "/" + db + "/" + key(n) },
		Check: func(n int, a balance.Answer) error {
			version := a.Header.Get("X-Sequins-Version")
			value, there := c.data.value(key(n), version)
			if there != (a.Code == http.StatusOK) || there && string(a.Body) != value {
				return fmt.Errorf("%s: %d of version %q: %.100q", key(n), a.Code, version, a.Body)
			}
			return nil
		},
	})
}

// calm waits until every member that is up has answered requests of the load.
func (c *cluster) calm(t testing.TB, load *balance.Client) {
	t.Helper()
	process.Eventually(t, "every member is asked", func() bool {
		for i, m := range c.members {
			if m.up && !load.Ready(i) {
				return false
			}
		}
		return true
	})
	since := load.Now()
	process.Eventually(t, "requests have been sent", func() bool { return load.Now() > since+time.Second/2 })
}

// expectAnswers fails the test if a request failed that must not fail, or if one took very long.
func (c *cluster) expectAnswers(t testing.TB, requests []balance.Request, may func(r balance.Request) bool) {
	t.Helper()
	s := balance.Summarize(requests)
	t.Logf("%d requests, %d failed, p99 %v, longest stall %v", s.Requests, s.Failures(), s.P99, s.Longest)
	if s.Requests == 0 || s.Requests == s.Failures() {
		t.Fatal("this shows nothing")
	}
	bad := 0
	for _, r := range requests {
		if r.Err == nil || !r.Wrong && may(r) {
			continue
		}
		if bad++; bad <= 10 {
			t.Errorf("%+v", r)
		}
	}
	if bad > 10 {
		t.Errorf("and %d more", bad-10)
	}
	if s.Longest > proxyTimeout { // mostly some milliseconds: bench/drill measures it
		t.Errorf("longest stall %v", s.Longest)
	}
}

func never(balance.Request) bool { return false }

// newTrio makes a cluster of three that serves its first version.
func newTrio(t *testing.T, extra string, sharding ...string) *cluster {
	t.Helper()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 3000, partitions: 12}, members: 3, replication: 2, extra: extra, sharding: sharding})
	c.begin(t, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	return c
}

// TestKilledUnderLoad kills one of three nodes by SIGKILL. What fails was sent to it before the client saw that it is
// gone; nothing fails when it returns.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "")
	load := c.balanced()
	c.calm(t, load)
	killed := load.Now()
	c.members[1].kill()
	process.Eventually(t, "the client has seen it", func() bool { return !load.Ready(1) })
	seen := load.Now()
	c.calm(t, load)
	c.members[1].start(t)
	c.members[1].waitReady(t)
	c.calm(t, load)
	c.expectAnswers(t, load.Stop(), func(r balance.Request) bool {
		return r.Node == 1 && r.End >= killed && r.Sent <= seen
	})
}

// TestUpgradeUnderLoad publishes versions while nodes are being asked: no request fails.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "")
	load := c.balanced()
	c.calm(t, load)
	for n := 2; n <= 4; n++ {
		c.publish(t, versionName(n))
		c.waitServed(t, versionName(n))
	}
	c.calm(t, load)
	c.expectAnswers(t, load.Stop(), never)
}

// TestColdStartWithoutSource ends all nodes and takes the source away. Two of the three serve all that they had, the
// third when it joins them, and all the next version when the source is back.
func TestColdStartWithoutSource(t *testing.T) {
	t.Parallel()
	for _, period := range []string{"300ms", "0s"} {
		t.Run("refresh_period "+period, func(t *testing.T) {
			t.Parallel()
			c := newTrio(t, "", "min_nodes = 0", `time_to_converge = "100ms"`)
			for _, m := range c.members {
				m.terminate(t)
				m.config.Extra = strings.Replace(m.config.Extra, "300ms", period, 1)
			}
			away := c.source + ".away"
			expect.NoError(t, os.Rename(c.source, away))
			load := c.balanced()
			startTogether(t, c.members[:2])
			c.calm(t, load)
			served := load.Now()
			c.checkEach(t, c.members[:2], versionName(1))
			startTogether(t, c.members[2:])
			c.calm(t, load)
			c.checkEach(t, c.members, versionName(1))
			c.expectAnswers(t, load.Stop(), func(r balance.Request) bool { return r.Node < 0 && r.Sent < served })

			c.data.publish(t, away, versionName(2)) // before a node lists the source, which some never do again
			expect.NoError(t, os.Rename(away, c.source))
			c.waitServed(t, versionName(2)) // also without refreshes: what has failed is tried again
			c.checkEach(t, c.members, versionName(2))
		})
	}
}

// TestRollingUpgrade replaces an older release by this one, node after node, and goes back, with a new version of the data at each stage: no
// request fails, and each release serves what the other has loaded, without loading it again. The older release is the program that
// -args -former names, otherwise this one.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 3000, partitions: 12}, members: 3, replication: 2, extra: "shutdown_delay = \"1s\"\n"})
	c.publish(t, versionName(1))
	for _, m := range c.members {
		m.config.Binary = *former
	}
	c.startAll(t)
	c.waitServed(t, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	load := c.balanced()
	c.calm(t, load)
	next := 2
	for stage, binary := range []string{"", *former} {
		for i, m := range c.members {
			m.terminate(t)
			m.config.Binary = binary
			m.start(t)
			m.waitReady(t)
			if held := m.node.Log(); strings.Contains(held, "load started") {
				t.Errorf("%s has loaded again what it had: stage %d\n%s", m.name, stage, held)
			}
			if i == 1 { // two releases at the same time
				c.publish(t, versionName(next))
				c.waitServed(t, versionName(next))
				c.waitWhole(t, z.look(t), versionName(next))
				next++
			}
		}
	}
	c.calm(t, load)
	c.expectAnswers(t, load.Stop(), never)
}
