//go:build integration

package cluster

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"sequins/test/collector"
	"sequins/test/process"
)

// route is that of requests for keys.
const route = "/{db}/{key}"

// TestTracing traces requests to two nodes, each with half of the data: a trace is a chain from the
// client's span to that of the node that has answered.
func TestTracing(t *testing.T) {
	t.Parallel()
	const client = "00f067aa0ba902b7" // its span
	sink := collector.Start(t, net.JoinHostPort(clientIP, "0"))
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{
		data: dataset{keys: 1000, partitions: 8}, members: 2, replication: 1,
		extra: fmt.Sprintf("tracing.otlp_endpoint = %q\ntracing.sample = 1.0\n", sink.URL),
	})
	version := versionName(1)
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)

	path := map[string][]string{} // the nodes that a trace is to show
	for i, m := range c.members {
		asker := m.node.Client()
		defer asker.Close()
		for p, key := range c.data.ofEach(version) {
			trace := fmt.Sprintf("%032x", 1+i*c.data.partitions+p)
			r, err := asker.Do("GET", "/"+db+"/"+key, "Traceparent: 00-"+trace+"-"+client+"-01\r\n")
			if err != nil || r.Code != 200 {
				t.Fatalf("%s, partition %d: %v, %v", m.name, p, r, err)
			}
			path[trace] = []string{m.addr()}
			if peer := r.Header.Get("X-Sequins-Proxied-To"); peer != "" {
				path[trace] = append(path[trace], peer)
			}
			if _, err := asker.Do("GET", "/"+db+"/"+key, ""); err != nil { // the root of a trace of its own
				t.Fatal(err)
			}
		}
	}
	want := 0
	for _, nodes := range path {
		want += 2 * (2*len(nodes) - 1)
	}
	process.Eventually(t, fmt.Sprintf("%d spans of keys have come", want), func() bool {
		others := func(s collector.Span) bool {
			return s.Kind == "internal" || s.Kind == "server" && s.Attributes["http.route"] != route
		}
		return len(slices.DeleteFunc(sink.Spans(), others)) >= want
	})
	traces := map[string][]collector.Span{}
	for _, s := range sink.Spans() {
		traces[s.Trace] = append(traces[s.Trace], s)
		if s.Parent == "" && s.Attributes["sequins.proxied"] == "true" {
			t.Errorf("what another node has asked is the root of a trace: %+v", s)
		}
	}
	proxied := 0
	for trace, nodes := range path {
		checkChain(t, traces[trace], client, nodes)
		proxied += len(nodes) - 1
	}
	if proxied != c.data.partitions {
		t.Errorf("%d of %d requests have been proxied", proxied, 2*c.data.partitions)
	}
	checkRoots(t, traces, path)
}

// checkChain wants the spans of a trace to be a chain that begins at a span of
// the client and leads through these nodes.
func checkChain(t *testing.T, spans []collector.Span, parent string, nodes []string) {
	t.Helper()
	if want := 2*len(nodes) - 1; len(spans) != want {
		t.Errorf("%d spans instead of %d: %+v", len(spans), want, spans)
	}
	for range spans {
		for _, s := range spans {
			switch {
			case s.Parent != parent:
				continue
			case s.Kind == "server" && s.Node == nodes[0]:
			case s.Kind == "client" && s.Node == nodes[0] && len(nodes) > 1 && s.Attributes["sequins.peer"] == nodes[1] &&
				s.Attributes["sequins.outcome"] == "ok" && s.Attributes["sequins.stage"] == "1":
				nodes = nodes[1:]
			default:
				t.Errorf("%+v is not from %q", s, nodes)
			}
			parent = s.ID
			break
		}
	}
	if last := spans[0]; len(nodes) != 1 {
		t.Errorf("the trace %s ends before %q: %+v", last.Trace, nodes, spans)
	}
}

// checkRoots wants as many traces as requests that no client has traced, with a
// span for each node on their way, too.
func checkRoots(t *testing.T, traces map[string][]collector.Span, path map[string][]string) {
	t.Helper()
	want, got := map[int]int{}, map[int]int{} // how many traces have how many spans
	for _, nodes := range path {
		want[2*len(nodes)-1]++
	}
	for _, spans := range traces {
		for _, s := range spans {
			if s.Parent == "" && s.Attributes["http.route"] == route {
				got[len(spans)]++
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("traces by the number of their spans: %v, want %v", got, want)
	}
}
