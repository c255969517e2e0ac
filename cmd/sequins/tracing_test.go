package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	sink "sequins/test/collector"
	"sequins/test/expect"
)

// SIGHUP changes how many requests are traced; for where to a restart is needed.
func TestReloadOfTracing(t *testing.T) {
	t.Parallel()
	spans := sink.Start(t, "")
	dir := t.TempDir()
	demoSource(t, dir)
	conf := filepath.Join(dir, "sequins.conf")
	write := func(endpoint string, sample int) {
		t.Helper()
		writeFile(t, conf, fmt.Sprintf("source = %q\nlocal_store = %q\n[tracing]\notlp_endpoint = %q\nsample = %d.0\n",
			filepath.Join(dir, "source"), filepath.Join(dir, "store"), endpoint, sample))
	}
	write(spans.URL, 0)
	cmd := command(t, "--bind", "127.0.0.1:0", "--config", conf)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "OTEL_BSP_SCHEDULE_DELAY=50") // milliseconds
	s := &served{process: start(t, cmd, cmd.StderrPipe)}
	s.base = "http://" + s.waitFor(`msg=serving address=(\S+)`)[1]
	s.awaitVersion(demoPath, demoFirst)

	before := time.Now()
	write("http://192.0.2.1:1", 1)
	s.signal(syscall.SIGHUP)
	s.waitFor(`changed=\[tracing.sample\]`)
	s.waitFor(`keys=\[tracing.otlp_endpoint\]`)
	expect.Eventually(t, "a request is traced", func() bool {
		s.get(demoPath)
		return len(requests(spans)) > 0
	})
	s.signal(syscall.SIGTERM)
	s.wait()
	for _, r := range requests(spans) {
		if int64(r.Start) < before.UnixNano() {
			t.Errorf("traced when nothing was to be: %+v", r)
		}
	}
}

// requests are the spans of requests that have come.
func requests(c *sink.Collector) []sink.Span {
	return slices.DeleteFunc(c.Spans(), func(s sink.Span) bool { return s.Kind != "server" })
}
