//go:build integration

package cluster

import (
	"strings"
	"testing"
	"time"

	"sequins/test/process"
	"sequins/test/zktest"
)

// TestHostileZooKeeper puts servers that are none in ZooKeeper's place, one after the other. No process ends, nobody who
// reads notices, and afterwards all is as before.
func TestHostileZooKeeper(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 2, replication: 1})
	version := versionName(1)
	c.begin(t, version)
	l := z.look(t)
	c.waitWhole(t, l, version)
	r := record(t, c, version)
	defer r.judge(t, "history-hostile")

	only := func(differs int32, body []byte) func(int32, []byte) zktest.Answer {
		return func(op int32, request []byte) zktest.Answer {
			if op == differs {
				return zktest.Answer{Body: body}
			}
			return zktest.Agree(op, request)
		}
	}
	for _, hostile := range []struct {
		name   string
		answer func(int32, []byte) zktest.Answer
	}{
		{"a count beyond the bytes", only(zktest.Children, append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 68)...))},
		{"a transaction of four zero bytes", only(zktest.Multi, make([]byte, 4))},
		{"empty replies", func(int32, []byte) zktest.Answer { return zktest.Answer{} }},
		{"no znodes", func(int32, []byte) zktest.Answer { return zktest.Answer{Code: -101} }},
		{"no replies", func(int32, []byte) zktest.Answer { return zktest.Answer{None: true} }},
		{"agrees and holds nothing", zktest.Agree},
	} {
		server := zktest.Serve(t, "127.0.0.1:0", hostile.answer)
		for _, m := range c.members {
			m.link.lead(t, server.Addr)
		}
		process.Eventually(t, hostile.name+": both nodes have asked", func() bool {
			return server.Connections.Load() >= 2 && server.Requests.Load() >= 4
		})
		asked, begin := server.Requests.Load(), time.Now()
		time.Sleep(2 * time.Second) // the rate is measured over that time
		if n, s := server.Requests.Load()-asked, time.Since(begin).Seconds(); float64(n) > 4000+800*s {
			t.Errorf("%s: %d requests in %.1f s", hostile.name, n, s)
		} else {
			t.Logf("%s: %d requests in %.1f s", hostile.name, n, s)
		}
		for _, m := range c.members {
			m.link.lead(t, z.servers[0])
		}
		c.waitWhole(t, l, version)
	}
	for _, m := range c.members {
		if log := m.node.Log(); strings.Contains(log, "panic") || strings.Contains(log, "fatal error") {
			t.Errorf("%s: %s", m.name, log)
		}
	}
}

// lead lets all connections end at another server.
func (l *link) lead(t testing.TB, server string) {
	t.Helper()
	l.refuse()
	for _, p := range l.proxies {
		p.Upstream = server
		process.Eventually(t, p.Listen+" is free", func() bool { return p.Start() == nil })
	}
}
