package server

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/version"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		expect.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	expect.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var pageTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// busyStatus is a node on which everything happens at once.
func busyStatus() status.Status {
	at := func(h, m int) time.Time { return time.Date(2026, 1, 31, h, m, 0, 0, time.UTC) }
	node := func(state status.State, current bool, partitions ...int) status.OnNode {
		return status.OnNode{Name: "localhost", CreatedAt: at(9, 30), State: state, Current: current, Partitions: partitions}
	}
	active := node(status.Active, true, 0, 1)
	active.ActiveAt, active.LastModified = at(10, 0), at(8, 0)
	active.Records, active.Bytes, active.Partitioner = 1234567, 150<<20, "string"
	building := node(status.Building, false, 0)
	building.Detail = "loading"
	building.Progress = &status.Progress{Files: 2, FilesDone: 1, Bytes: 1 << 30, BytesDone: 1 << 29, Records: 5000000,
		RecordsPerSecond: 1250000.5, BytesPerSecond: 134217728, Partitions: 2, PartitionsDone: 1, StartedAt: at(11, 59), ETA: pageTime.Add(90 * time.Second)}
	failed := node(status.Error, false)
	failed.Error = "part-r-00001: offset 4096: <bad> sync marker & more"
	remote := node(status.Active, false, 1)
	remote.Name = "other:9599"
	version := func(name string, nodes map[string]status.OnNode) status.Version {
		return status.Version{Path: "/data/" + name, NumPartitions: 2, TargetReplication: 1, Nodes: nodes}
	}
	return status.Status{
		Node: "localhost", Build: "v2.0", StartedAt: at(9, 0), Source: "/data", RefreshedAt: at(11, 59),
		Disk:     status.Disk{Bytes: 100 << 30, Free: 9 << 30},
		Warnings: []string{`the directory "healthz" cannot be a db`},
		DBs: map[string]status.DB{
			"names": {Versions: map[string]status.Version{
				"2026-01-29": version("names/2026-01-29", map[string]status.OnNode{"localhost": node(status.Removing, false, 0, 1)}),
				"2026-01-30": version("names/2026-01-30", map[string]status.OnNode{"localhost": active, "other:9599": remote}),
				"2026-01-31": version("names/2026-01-31", map[string]status.OnNode{"localhost": building}),
			}},
			"broken": {Versions: map[string]status.Version{
				"1": version("broken/1", map[string]status.OnNode{"localhost": failed}),
			}},
			"empty": {Error: "there is no version of it"},
		},
	}
}

func TestStatusJSON(t *testing.T) {
	c := catalogOf(t, nil)
	c.state = busyStatus()
	s := start(t, c, testOptions{})
	for target, file := range map[string]string{"/": "status.json", "/names": "db.json", "/healthz": "healthz.json"} {
		got := s.get(t, target)
		if got.status != 200 || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", target, got.status, got.header.Get("Content-Type"))
		}
		golden(t, file, indent(t, got.body))
	}
	if with, without := s.get(t, "/names/"), s.get(t, "/names"); with.body != without.body {
		t.Errorf("/names/: %s\n/names: %s", with.body, without.body)
	}
}

// indent makes JSON readable, and keeps the order of its fields.
func indent(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	var v json.RawMessage
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	expect.NoError(t, e.Encode(v))
	return b.String()
}

func TestEmptyStatus(t *testing.T) {
	const noDatabase = `"healthy":false,"health":"Ready, but there is no database in the source.","level":"warn"}`
	c := &catalog{}
	s := start(t, c, testOptions{})
	if got := s.get(t, "/"); got.status != 200 || got.body != `{"dbs":{},"shard_id":"",`+noDatabase+"\n" {
		t.Errorf("/: %+v", got)
	}
	if got := s.get(t, "/healthz"); got.status != 404 || got.body != "{}\n" {
		t.Errorf("/healthz: %+v", got)
	}
	c.state.DBs = map[string]status.DB{"db": {}, "db2": {Versions: map[string]status.Version{"1": {}}}}
	want := `{"dbs":{"db":{"versions":{}},"db2":{"versions":{"1":{"path":"","num_partitions":0,"target_replication":0,` +
		`"replication_histogram":{},"average_replication":0,"missing_partitions":0,"underreplicated_partitions":0,"overreplicated_partitions":0,"nodes":{}}}}},"shard_id":"","healthy":false,"health":"Serving 0 of 2 databases.","level":"warn"}`
	s = start(t, &catalog{state: c.state}, testOptions{})
	if got := s.get(t, "/"); got.body != want+"\n" {
		t.Errorf("/: %s", got.body)
	}
}

func TestHealthCodes(t *testing.T) {
	for state, code := range map[status.State]int{status.Active: 200, status.Building: 404, status.Removing: 404, status.Error: 404} {
		c := &catalog{state: status.Status{Node: "localhost", ShardID: "7", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{
			"1": {Nodes: map[string]status.OnNode{"localhost": {State: state}, "other:1": {State: status.Active}}},
		}}}}}
		s := start(t, c, testOptions{})
		if got := s.get(t, "/healthz"); got.status != code || got.header.Get("X-Sequins-Shard-Id") != "7" {
			t.Errorf("%s: %+v", state, got)
		}
	}
}

func TestReady(t *testing.T) {
	c := &catalog{reason: "db a has\nno version yet"}
	s := start(t, c, testOptions{})
	if got := s.get(t, "/readyz"); got.status != 503 || got.body != "not ready: db a has no version yet\n" {
		t.Errorf("%+v", got)
	}
	if got := s.get(t, "/livez"); got.status != 200 || got.body != "ok\n" {
		t.Errorf("%+v", got)
	}
}

// The status is a page for clients that prefer HTML to JSON, and name it.
func TestPrefersHTML(t *testing.T) {
	c := catalogOf(t, nil)
	c.state = busyStatus()
	s := start(t, c, testOptions{})
	tests := map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/plain": false,
		"text/html": true, "TEXT/HTML": true, "text/html;q=0.5": true, "text/html; q=0": false, "text/html;q=0.0": false, "text/html;level=1;q=1": true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"text/*":                                true,
		"application/json, text/html;q=0.1":     false,
		"text/html;q=0.1, */*":                  false,
		"application/json;x=text/html":          false,
		"application/json\r\nAccept: text/html": true,
	}
	for accept, want := range tests {
		if got := s.get(t, "/", "Accept: "+accept); strings.HasPrefix(got.header.Get("Content-Type"), "text/html") != want {
			t.Errorf("%q: %v", accept, got.header)
		}
	}
}

func TestStatusPageIsServed(t *testing.T) {
	c := catalogOf(t, nil)
	c.state = busyStatus()
	s := start(t, c, testOptions{})
	const accept = "Accept: text/html,*/*;q=0.8"
	got := s.get(t, "/", accept)
	if got.status != 200 || got.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", got.status, got.header)
	}
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=(), geolocation=(), microphone=()"} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
	if policy := got.header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	for _, name := range []string{"names", "broken", "empty"} {
		if !strings.Contains(got.body, `href="/`+name+`/"`) {
			t.Errorf("%s is not on the page", name)
		}
		one := s.get(t, "/"+name+"/", accept)
		if one.status != 200 || !strings.Contains(one.body, "<span>"+name+": ") || strings.Contains(one.body, `id="databases"`) {
			t.Errorf("the page of %s: %d %s", name, one.status, one.body)
		}
	}
	if got := s.get(t, "/nodb", accept); got.status != 404 || got.body != "no such db\n" {
		t.Errorf("/nodb: %+v", got)
	}
	if got := s.get(t, "/healthz", accept); got.header.Get("Content-Type") != "application/json" {
		t.Errorf("/healthz: %+v", got)
	}
	for _, target := range []string{"/", "/names"} {
		for _, h := range []string{accept, "Accept: application/json"} {
			if got := s.get(t, target, h); got.header.Get("Vary") != "Accept" || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, %s: %v", target, h, got.header)
			}
		}
	}
}

// What a scrape sees of the catalogue.
func TestGauges(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "one"})
	c.state = busyStatus()
	m := metrics.New()
	s := start(t, c, testOptions{Metrics: m.Server})
	s.get(t, "/db/a")
	s.get(t, "/db/a") // which is in memory now
	s.get(t, "/db/b")
	s.get(t, "/nodb/b")
	s.get(t, "/")
	s.get(t, "/db/%")
	s.get(t, "/db/a?proxy=v1")
	s.get(t, "/db/a?proxy=v0")
	s.get(t, "/nodb/a?proxy=v1")
	s.get(t, "/livez")
	s.Drain()
	body := scrapeText(t, m)
	for _, want := range []string{
		`sequins_requests_total{code="200",db="db",route="key"} 2`,
		`sequins_block_reads_total{db="db"} 1`,
		`sequins_requests_total{code="404",db="db",route="key"} 1`,
		`sequins_requests_total{code="404",db="",route="key"} 1`,
		`sequins_requests_total{code="200",db="db",route="peer"} 1`,
		`sequins_requests_total{code="501",db="db",route="peer"} 1`,
		`sequins_requests_total{code="501",db="",route="peer"} 1`,
		`sequins_requests_total{code="200",db="",route="status"} 1`,
		`sequins_requests_total{code="200",db="",route="health"} 1`,
		`sequins_requests_total{code="400",db="",route="invalid"} 1`,
		`sequins_response_bytes_total{db="db",route="key"} 18`,
		`sequins_versions{db="names",state="ACTIVE"} 1`,
		`sequins_versions{db="names",state="BUILDING"} 1`,
		`sequins_versions{db="broken",state="ERROR"} 1`,
		`sequins_version_records{db="names"} 1.234567e+06`,
		"sequins_store_blocks_bytes 1.572864e+08",
		"sequins_ready 0",
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	// A db that has gone is not counted any more, once there is another one.
	other := version.NewSet("other")
	c.remove("db")
	c.mu.Lock()
	c.sets["other"] = other
	c.mu.Unlock()
	s.get(t, "/other/x")
	if body := scrapeText(t, m); strings.Contains(body, `db="db"`) || !strings.Contains(body, `db="other"`) {
		t.Error("the metrics of a db that has gone are still there")
	}
}

// The runbook is served to everybody, also where pages need a token.
func TestRunbookIsServed(t *testing.T) {
	open := start(t, &catalog{}, testOptions{})
	shut, _ := guarded(t, testOptions{})
	for _, s := range []*running{open, shut} {
		got := s.get(t, "/-/runbook")
		if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") || got.header.Get("Content-Security-Policy") == "" ||
			!strings.Contains(got.body, `<h3 id="sequinsdown">`) {
			t.Errorf("%d %v", got.status, got.header)
		}
	}
	if got := open.get(t, "/-/runbook/"); got.status != 404 {
		t.Errorf("/-/runbook/: %+v", got)
	}
}

// HAProxy's check, as it sends it without further configuration, follows /readyz, and needs no token.
func TestChecksOfHAProxy(t *testing.T) {
	s, c := guarded(t, testOptions{PeerSecret: "the-secret-of-the-cluster"})
	for _, check := range []string{"OPTIONS / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.0\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		for reason, want := range map[string]int{"": 204, "db is not there yet": 503} {
			c.mu.Lock()
			c.reason = reason
			c.mu.Unlock()
			got := s.raw(t, "OPTIONS", check)
			if got.status != want || got.header.Get("Cache-Control") != "no-store" || strings.Contains(got.body, "db") {
				t.Errorf("%q, %q: %+v", check, reason, got)
			}
		}
	}
	s.Drain()
	if got := s.raw(t, "OPTIONS", "OPTIONS / HTTP/1.0\r\n\r\n"); got.status != 503 {
		t.Errorf("draining: %+v", got)
	}
}
