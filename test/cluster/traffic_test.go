//go:build integration

package cluster

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"
)

// TestTraffic asks each of three members at its own pace: each shows the traffic of all.
func TestTraffic(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 300, partitions: 4}, members: 3, replication: 2})
	c.begin(t, versionName(1))
	end := make(chan struct{})
	defer close(end)
	paces := []int{20, 40, 60} // requests per second; half of them for keys that are absent
	for i, m := range c.members {
		client := m.node.Client()
		go func() {
			defer client.Close()
			tick := time.NewTicker(time.Second / time.Duration(paces[i]))
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				case <-tick.C:
				}
				key := c.data.key(n % c.data.keys)
				if n%2 == 0 {
					key = "no-such-key"
				}
				_, _ = client.Get("/" + db + "/" + key) // what fails is not counted, and shows
			}
		}()
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < want/4 }
	for i, m := range c.members {
		var st status.Status
		m.node.WaitFor(t, m.name+" shows the traffic", func() bool {
			r := m.node.Get(t, "/")
			expect.NoError(t, json.Unmarshal(r.Body, &st))
			own, all := st.DBs[db].Traffic, st.DBs[db].ClusterTraffic
			return near(own.Requests, float64(paces[i])) && near(all.Requests, 120) && near(all.Misses, 60) && all.P99 >= own.P99 && own.P50 > 0
		})
		for name, p := range st.Peers {
			if p.Traffic.Requests == 0 {
				t.Errorf("%s does not show the traffic of %s", m.name, name)
			}
		}
	}
}
