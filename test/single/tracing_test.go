//go:build integration

package single

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/collector"
	"sequins/test/process"
)

// inTrace are the spans of a trace.
func inTrace(spans []collector.Span, trace string) (found []collector.Span) {
	for _, s := range spans {
		if s.Trace == trace {
			found = append(found, s)
		}
	}
	return found
}

// A node traces requests that its clients trace, and nothing else. Its spans contain no key and no value.
func TestTracing(t *testing.T) {
	t.Parallel()
	sink := collector.Start(t, "")
	source, c := newNode(t)
	c.Sections = fmt.Sprintf("[tracing]\notlp_endpoint = %q\nsample = 0\n", sink.URL)
	secret := func(i int) (string, string) { return fmt.Sprintf("secretkey-%d", i), fmt.Sprintf("secretvalue-%d", i) }
	writeVersion(t, source, "db", "v1", 2, 100, secret)
	n := process.Serve(t, c, "db", "v1")

	traced := func(id, target string) {
		client := n.Client()
		defer client.Close()
		header := fmt.Sprintf("traceparent: 00-%s-00f067aa0ba902b7-01\r\ntracestate: vendor=opaque\r\n", id)
		if _, err := client.Do("GET", target, header); err != nil {
			t.Fatal(err)
		}
	}
	hit, miss, nodb := strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
	traced(hit, "/db/secretkey-7?x=secretkey-8")
	traced(miss, "/db/secretkey-absent")
	traced(nodb, "/secretkey-9")
	n.Get(t, "/db/secretkey-1") // nobody wants a trace of this one

	n.WaitFor(t, "the spans have come", func() bool {
		all := sink.Spans()
		return len(inTrace(all, hit)) > 0 && len(inTrace(all, miss)) > 0 && len(inTrace(all, nodb)) > 0
	})
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	spans := sink.Spans()
	for trace, want := range map[string]collector.Span{
		hit: {Name: "GET /{db}/{key}", Attributes: map[string]string{"http.request.method": "GET", "http.route": "/{db}/{key}", "url.scheme": "http",
			"http.response.status_code": "200", "http.response.body.size": "13", "sequins.db": "db", "sequins.version": "v1", "sequins.partition": "*", "sequins.proxied": "false"}},
		miss: {Name: "GET /{db}/{key}", Attributes: map[string]string{"http.request.method": "GET", "http.route": "/{db}/{key}", "url.scheme": "http",
			"http.response.status_code": "404", "http.response.body.size": "12", "sequins.db": "db", "sequins.version": "v1", "sequins.partition": "*", "sequins.proxied": "false"}},
		nodb: {Name: "GET /{db}", Attributes: map[string]string{"http.request.method": "GET", "http.route": "/{db}", "url.scheme": "http",
			"http.response.status_code": "404", "http.response.body.size": "*", "sequins.proxied": "false"}},
	} {
		found := inTrace(spans, trace)
		if len(found) != 1 {
			t.Errorf("%d spans of trace %s", len(found), trace)
			continue
		}
		s := found[0]
		for name, v := range want.Attributes {
			if v == "*" && s.Attributes[name] != "" {
				s.Attributes[name] = v
			}
		}
		if s.Name != want.Name || s.Kind != "server" || s.Parent != "00f067aa0ba902b7" || s.State != "vendor=opaque" || s.Failed || s.End < s.Start {
			t.Errorf("%+v", s)
		}
		if diff := cmp.Diff(want.Attributes, s.Attributes); diff != "" {
			t.Errorf("trace %s (-want +got):\n%s", trace, diff)
		}
		if s.Resource["service.name"] != "sequins" || s.Resource["service.version"] == "" || !strings.HasSuffix(s.Node, n.Addr[strings.LastIndexByte(n.Addr, ':'):]) {
			t.Errorf("of the node: %v", s.Resource)
		}
	}
	for _, s := range spans {
		if s.Parent == "" {
			t.Errorf("nobody has asked for %+v", s)
		}
	}
	if raw := sink.Raw(); bytes.Contains(raw, []byte("secret")) {
		t.Errorf("keys or values have been sent: %q", raw)
	}
}
