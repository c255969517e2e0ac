// Package collector is an OpenTelemetry collector for tests: it receives spans by
// OTLP over HTTP and returns them.
package collector

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Name, Kind        string // Kind is "server", "client" or "internal"
	Trace, ID, Parent string // in hexadecimal; Parent is "" for a root span
	State             string // the tracestate
	Failed            bool
	Start, End        uint64            // nanoseconds since 1970
	Attributes        map[string]string // as strings
	Node              string            // service.instance.id
	Resource          map[string]string
}

// Collector is a running collector.
type Collector struct {
	URL string

	mu     sync.Mutex
	spans  []Span
	raw    []byte        // all received bodies
	header []http.Header // of each request
	path   []string
}

// Start starts a collector on an address; "" chooses a free loopback port. It is
// stopped with the test.
func Start(t testing.TB, addr string) *Collector {
	t.Helper()
	c := new(Collector)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	if addr != "" {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s.Listener.Close()
		s.Listener = ln
	}
	s.Start()
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// take parses an ExportTraceServiceRequest. It has the wire format of TracesData,
// whose package does not import gRPC.
func (c *Collector) take(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if kind := r.Header.Get("Content-Type"); r.Method != http.MethodPost || kind != "application/x-protobuf" {
		return fmt.Errorf("unexpected %s with content type %q", r.Method, kind)
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal(body, &data); err != nil {
		return fmt.Errorf("parsing spans: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	c.header, c.path = append(c.header, r.Header), append(c.path, r.URL.Path)
	for _, of := range data.ResourceSpans {
		about := attributes(of.GetResource())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(s, about))
			}
		}
	}
	return nil
}

func spanOf(s *tracepb.Span, about map[string]string) Span {
	kinds := map[tracepb.Span_SpanKind]string{
		tracepb.Span_SPAN_KIND_SERVER: "server", tracepb.Span_SPAN_KIND_CLIENT: "client", tracepb.Span_SPAN_KIND_INTERNAL: "internal",
	}
	return Span{
		Name: s.Name, Kind: kinds[s.Kind], State: s.TraceState,
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		Start:  s.StartTimeUnixNano, End: s.EndTimeUnixNano,
		Attributes: attributes(s), Node: about["service.instance.id"], Resource: about,
	}
}

func attributes(of interface{ GetAttributes() []*commonpb.KeyValue }) map[string]string {
	all := map[string]string{}
	for _, a := range of.GetAttributes() {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			all[a.Key] = fmt.Sprint(v.BoolValue)
		default:
			all[a.Key] = fmt.Sprint(a.Value)
		}
	}
	return all
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Raw returns all received bodies.
func (c *Collector) Raw() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raw)
}

// Requests returns the paths and headers of the requests received so far.
func (c *Collector) Requests() (paths []string, headers []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.path), slices.Clone(c.header)
}
