package proxy

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"sequins/observe/tracing"
)

// Every attempt has its own span, which ends once and has the same outcome as in the metrics. The
// request names that span, also when it is repeated on a new connection.
func TestAttemptSpans(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		recorder := tracetest.NewSpanRecorder()
		tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)), "test")
		tracer.SetSample(1)
		var mu sync.Mutex
		told := map[string]string{} // the traceparents that have come: to whom
		answers := []behaviour{says(answer(200, "a")), says(answer(501, "not here")), hangs, breaks, says(answer(503, ""))}
		for i, p := range w.peers {
			p.set(func(c net.Conn, req *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				if all := req.Header.Values("Traceparent"); len(all) == 1 {
					told[all[0]] = p.addr
				} else {
					t.Errorf("%s is told %q", p.addr, all)
				}
				return true
			})
			heard := *p.do.Load()
			p.set(func(c net.Conn, req *http.Request) bool { return heard(c, req) && answers[i](c, req) })
		}
		request := tracer.Request(nil, nil, true, time.Now())
		for range 100 {
			q := query(w.peers...)
			q.Trace = request
			if g, err := fetch(w.Client, q); err != nil || g.body != "a" {
				t.Fatalf("%+v, %v", g, err)
			}
		}
		time.Sleep(2 * raceTime)
		spans := recorder.Ended()
		if begun := len(recorder.Started()) - 1; begun != len(spans) { // without the request
			t.Errorf("%d spans have begun and %d ended", begun, len(spans))
		}
		counted, outcomes := map[string]int{}, map[string]int{}
		for _, s := range spans {
			all := map[string]string{}
			for _, a := range s.Attributes() {
				all[string(a.Key)] = a.Value.String()
			}
			counted[stageLabel(all["sequins.stage"])+" "+all["sequins.outcome"]]++
			outcomes[all["sequins.outcome"]]++
			id := s.SpanContext()
			parent := fmt.Sprintf("00-%s-%s-01", id.TraceID(), id.SpanID())
			if told[parent] != all["sequins.peer"] && told[parent] != "" {
				t.Errorf("%s is told the span of %s", told[parent], all["sequins.peer"])
			}
			if !s.Parent().Equal(recorder.Started()[0].SpanContext()) {
				t.Errorf("the parent of an attempt is %v", s.Parent())
			}
			if all["sequins.outcome"] == "ok" && (all["http.response.status_code"] != "200" || all["sequins.peer"] != "a" || told[parent] != "a") {
				t.Errorf("an attempt that has won: %v", all)
			}
			delete(told, parent)
		}
		if len(told) > 0 {
			t.Errorf("peers are told of spans that there are not: %v", told)
		}
		if diff := cmp.Diff(w.counted(), counted); diff != "" {
			t.Errorf("attempts (-metrics +spans):\n%s", diff)
		}
		for _, one := range []string{"ok", "absent", "cancelled", "error"} {
			if outcomes[one] == 0 {
				t.Errorf("none is %q: %v", one, outcomes)
			}
		}
	})
}

// stageLabel is the name of a stage in the metrics.
func stageLabel(stage string) string {
	if stage > "2" {
		return "3+"
	}
	return stage
}
