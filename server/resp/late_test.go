package resp_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/reads"
	"sequins/server/resp"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// atPeer says that every partition is also on some other nodes.
type atPeer struct {
	version.Solo
	peers []string
}

func (p atPeer) Peers(int) []string { return p.peers }

// One key whose node hangs does not fail the commands of a pipeline whose keys are here.
func TestLateKeyInPipeline(t *testing.T) {
	all := map[string]string{}
	for i := range 100 {
		all[fmt.Sprintf("key-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer hangs.Close()
	v := version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, Partitioner: shard.String, Following: atPeer{peers: []string{hangs.Addr().String()}}})
	versions.Put(t, v, all, func(p int) bool { return p == 1 })
	set := version.NewSet("db")
	set.Prepare(v)
	expect.NoError(t, set.Activate(contents.In("v1")))
	peers := proxy.New(proxy.Options{Timeout: 200 * time.Millisecond, StageTimeout: 100 * time.Millisecond, Upstream: func(string) bool { return true },
		Metrics: new(metrics.Proxy), Logger: quiet})
	defer peers.Close()
	c := start(t, catalog{"db": set}, resp.Options{}, reads.Options{Proxy: peers, Logger: quiet}).dial(t)
	var commands strings.Builder
	for i := range 100 {
		commands.WriteString(command("GET", fmt.Sprintf("db/key-%d", i)))
	}
	c.send(commands.String())
	for i := range 100 {
		want := fmt.Sprintf("value-%d", i)
		if shard.String.Partition(fmt.Appendf(nil, "key-%d", i), 2) == 0 {
			want = "-TRYAGAIN the nodes that have this key's partition took too long"
		}
		if got := c.reply(); got != want {
			t.Errorf("key-%d: %s", i, got)
		}
	}
}

// A page of HSCAN ends before the values are too large together, and what it holds is counted until it is sent.
func TestPagesOfLargeValues(t *testing.T) {
	all := map[string]string{"b": "small"}
	for i := range 20 {
		all[fmt.Sprintf("a%02d", i)] = strings.Repeat("x", 60<<10)
	}
	s := start(t, catalog{"db": setOf(t, "db", "v1", all)}, resp.Options{}, reads.Options{MaxBatchBytes: 128 << 10, Logger: quiet})
	c := s.dial(t)
	seen, cursor := 0, "0"
	for range 30 {
		got := c.do("HSCAN", "db", cursor)
		if strings.HasPrefix(got, "-") {
			t.Fatal(got)
		}
		head, _, _ := strings.Cut(strings.TrimPrefix(got, "["), " ")
		for i := range 20 {
			if strings.Contains(got, fmt.Sprintf("a%02d ", i)) {
				seen++
			}
		}
		if cursor = head; cursor == "0" {
			break
		}
	}
	if seen != 20 || cursor != "0" {
		t.Errorf("%d of 20 large values, at cursor %s", seen, cursor)
	}
}
