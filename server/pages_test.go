package server

import (
	"encoding/json"
	"flag"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/metrics"
	"sequins/version"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var pageTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// busyStatus is a node on which everything happens at once.
func busyStatus() Status {
	at := func(h, m int) time.Time { return time.Date(2026, 1, 31, h, m, 0, 0, time.UTC) }
	node := func(state State, current bool, partitions ...int) NodeStatus {
		return NodeStatus{Name: "localhost", CreatedAt: at(9, 30), State: state, Current: current, Partitions: partitions}
	}
	active := node(StateActive, true, 0, 1)
	active.ActiveAt, active.LastModified = at(10, 0), at(8, 0)
	active.Records, active.Bytes, active.Partitioner = 1234567, 150<<20, "string"
	building := node(StateBuilding, false, 0)
	building.Detail = "loading"
	building.Progress = &Progress{Files: 2, FilesDone: 1, Bytes: 1 << 30, BytesDone: 1 << 29, Records: 5000000,
		RecordsPerSecond: 1250000.5, BytesPerSecond: 134217728, Partitions: 2, PartitionsDone: 1, StartedAt: at(11, 59), ETA: pageTime.Add(90 * time.Second)}
	failed := node(StateError, false)
	failed.Error = "part-r-00001: offset 4096: <bad> sync marker & more"
	remote := node(StateActive, false, 1)
	remote.Name = "other:9599"
	version := func(name string, nodes map[string]NodeStatus) VersionStatus {
		return VersionStatus{Path: "/data/" + name, NumPartitions: 2, TargetReplication: 1, Nodes: nodes}
	}
	return Status{
		Node: "localhost", Build: "v2.0", StartedAt: at(9, 0), Source: "/data", RefreshedAt: at(11, 59),
		Disk:     Disk{Bytes: 100 << 30, Free: 9 << 30},
		Warnings: []string{`the directory "healthz" cannot be a db`},
		DBs: map[string]DBStatus{
			"names": {Versions: map[string]VersionStatus{
				"2026-01-29": version("names/2026-01-29", map[string]NodeStatus{"localhost": node(StateRemoving, false, 0, 1)}),
				"2026-01-30": version("names/2026-01-30", map[string]NodeStatus{"localhost": active, "other:9599": remote}),
				"2026-01-31": version("names/2026-01-31", map[string]NodeStatus{"localhost": building}),
			}},
			"broken": {Versions: map[string]VersionStatus{
				"1": version("broken/1", map[string]NodeStatus{"localhost": failed}),
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
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
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
	c.state.DBs = map[string]DBStatus{"db": {}, "db2": {Versions: map[string]VersionStatus{"1": {}}}}
	want := `{"dbs":{"db":{"versions":{}},"db2":{"versions":{"1":{"path":"","num_partitions":0,"target_replication":0,` +
		`"replication_histogram":{},"average_replication":0,"missing_partitions":0,"underreplicated_partitions":0,"overreplicated_partitions":0,"nodes":{}}}}},"shard_id":"","healthy":false,"health":"Serving 0 of 2 databases.","level":"warn"}`
	s = start(t, &catalog{state: c.state}, testOptions{})
	if got := s.get(t, "/"); got.body != want+"\n" {
		t.Errorf("/: %s", got.body)
	}
}

func TestHealthCodes(t *testing.T) {
	for state, code := range map[State]int{StateActive: 200, StateBuilding: 404, StateRemoving: 404, StateError: 404} {
		c := &catalog{state: Status{Node: "localhost", ShardID: "7", DBs: map[string]DBStatus{"db": {Versions: map[string]VersionStatus{
			"1": {Nodes: map[string]NodeStatus{"localhost": {State: state}, "other:1": {State: StateActive}}},
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

func TestCount(t *testing.T) {
	tests := []struct {
		partitions, target int
		nodes              map[string]NodeStatus
		want               VersionStatus
	}{
		{0, 1, nil, VersionStatus{ReplicationHistogram: map[int]int{}}},
		{2, 2, map[string]NodeStatus{"a": {Partitions: []int{0, 1}}}, // DESIGN's example
			VersionStatus{ReplicationHistogram: map[int]int{1: 2}, AverageReplication: 1, UnderreplicatedPartitions: 2}},
		{3, 1, map[string]NodeStatus{"a": {Partitions: []int{0, 1}}, "b": {Partitions: []int{1}}, "c": {Partitions: []int{2}, State: StateError}},
			VersionStatus{ReplicationHistogram: map[int]int{0: 1, 1: 1, 2: 1}, AverageReplication: 1, MissingPartitions: 1, OverreplicatedPartitions: 1}},
		{4, 2, map[string]NodeStatus{"a": {Partitions: []int{0, 9}}},
			VersionStatus{ReplicationHistogram: map[int]int{0: 3, 1: 1}, AverageReplication: 0.25, MissingPartitions: 3, UnderreplicatedPartitions: 1}},
	}
	for _, test := range tests {
		got := VersionStatus{NumPartitions: test.partitions, TargetReplication: test.target, Nodes: test.nodes}
		got.count()
		test.want.NumPartitions, test.want.TargetReplication, test.want.Nodes = test.partitions, test.target, test.nodes
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%d partitions (-want +got):\n%s", test.partitions, diff)
		}
	}
}

func TestWantsHTML(t *testing.T) {
	tests := map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false, "text/plain": false,
		"text/html": true, "TEXT/HTML": true, "text/html;q=0.5": true, "text/html; q=0": false, "text/html;q=0.0": false, "text/html;level=1;q=1": true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"application/json, text/html;q=0.1":                               true,
		"application/json;x=text/html":                                    false,
	}
	for accept, want := range tests {
		if got := wantsHTML([]string{accept}); got != want {
			t.Errorf("%s: %v", accept, got)
		}
	}
	if !wantsHTML([]string{"application/json", "text/html"}) {
		t.Error("the second Accept line is not seen")
	}
}

func TestStatusPage(t *testing.T) {
	var b strings.Builder
	if err := pageTemplate.Execute(&b, busyPage()); err != nil {
		t.Fatal(err)
	}
	golden(t, "page.html", b.String())
}

// busyPage is the page of busyStatus.
func busyPage() page {
	st, level := newServer(&catalog{state: busyStatus()}, testOptions{}).status()
	return newPage(st, level, "", pageTime)
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
	for _, name := range []string{"names", "broken", "empty"} {
		if !strings.Contains(got.body, `href="/`+name+`/"`) {
			t.Errorf("%s is not on the page", name)
		}
		one := s.get(t, "/"+name+"/", accept)
		if one.status != 200 || !strings.Contains(one.body, `href="/`+name+`/"`) || strings.Count(one.body, "<h2>") != 1 {
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

// The policy allows the page's own style and script, to the byte, and nothing else.
func TestPagePolicy(t *testing.T) {
	s := start(t, &catalog{}, testOptions{})
	got := s.get(t, "/", "Accept: text/html")
	policy := got.header.Get("Content-Security-Policy")
	for tag, directive := range map[string]string{"style": "style-src ", "script": "script-src "} {
		_, rest, _ := strings.Cut(got.body, "<"+tag+">")
		source, _, closed := strings.Cut(rest, "</"+tag+">")
		if !closed || len(source) < 1000 || strings.Count(got.body, "<"+tag) != 1 || !strings.Contains(policy, directive+digest(source)+";") {
			t.Errorf("the %s of %d bytes is not what %q allows", tag, len(source), policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
}

// Whatever stands in a name, an error or a path is text on the page.
func TestStatusPageEscapes(t *testing.T) {
	const evil = `"><script>alert(1)</script>&'`
	st := Status{Node: evil, Build: evil, Source: evil, SourceError: evil, Warnings: []string{evil}, DBs: map[string]DBStatus{
		evil: {Error: evil, Versions: map[string]VersionStatus{evil: {Path: evil, Nodes: map[string]NodeStatus{
			evil: {State: evil, Error: evil, Detail: evil, Partitioner: evil, Current: true, Progress: &Progress{}},
			"x":  {State: evil, Detail: evil},
		}}}},
	}}
	var b strings.Builder
	st, level := newServer(&catalog{state: st, reason: evil}, testOptions{}).status()
	if err := pageTemplate.Execute(&b, newPage(st, level, "", pageTime)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "<script") != 1 || !strings.Contains(b.String(), "<script></script>") { // our own, empty here
		t.Errorf("not escaped:\n%s", b.String())
	}
	if n := strings.Count(html.UnescapeString(b.String()), evil); n < 12 {
		t.Errorf("only %d of the texts are on the page:\n%s", n, b.String())
	}
}

func TestHealth(t *testing.T) {
	dbs := func(states ...State) map[string]DBStatus {
		m := map[string]DBStatus{}
		for i, s := range states {
			m[string(rune('a'+i))] = DBStatus{Versions: map[string]VersionStatus{
				"1": {Nodes: map[string]NodeStatus{"localhost": {State: StateActive, Current: true}}},
				"2": {Nodes: map[string]NodeStatus{"localhost": {State: s}}},
			}}
		}
		return m
	}
	missing, thin := dbs(StateRemoving), dbs(StateError, StateRemoving)
	missing["a"].Versions["1"] = VersionStatus{MissingPartitions: 1, Nodes: missing["a"].Versions["1"].Nodes}
	thin["b"].Versions["1"] = VersionStatus{UnderreplicatedPartitions: 1, Nodes: thin["b"].Versions["1"].Nodes}
	delete(thin["a"].Versions, "2")
	hidden := map[string]DBStatus{"a": {Error: "its versions cannot be listed", Versions: dbs(StateRemoving)["a"].Versions}}
	tests := []struct {
		st          Status
		reason      string
		level, line string
	}{
		{Status{DBs: missing}, "", levelBad, "Serving 1 database; 1 with partitions that no node holds."},
		{Status{DBs: thin}, "", levelWarn, "Serving 2 databases; 1 with partitions that too few nodes hold."},
		{Status{DBs: dbs(StateRemoving)}, "", levelGood, "Serving 1 database."},
		{Status{DBs: dbs(StateRemoving, StateBuilding)}, "", levelGood, "Serving 2 databases."},
		{Status{DBs: dbs(StateError, StateBuilding)}, "", levelWarn, "Serving 2 databases; 1 with a version that could not be loaded."},
		{Status{DBs: dbs(StateActive), SourceError: "no such host"}, "", levelWarn, "Serving 1 database, but the source cannot be read."},
		{Status{DBs: hidden}, "", levelWarn, "Serving 1 database; 1 that cannot be listed in the source."},
		{Status{DBs: map[string]DBStatus{"a": {}, "b": dbs(StateActive)["a"]}}, "", levelWarn, "Serving 1 of 2 databases."},
		{Status{}, "", levelWarn, "Ready, but there is no database in the source."},
		{Status{DBs: dbs(StateActive)}, "db x has no version", levelBad, "Not ready: db x has no version."},
		{Status{DBs: dbs(StateActive), Draining: true}, "", levelBad, "This node is shutting down."},
	}
	for _, test := range tests {
		test.st.Node = "localhost"
		level, line := test.st.health(test.reason == "", test.reason)
		if level != test.level || line != test.line {
			t.Errorf("%s %q, want %s %q", level, line, test.level, test.line)
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
		"sequins_draining 1",
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
