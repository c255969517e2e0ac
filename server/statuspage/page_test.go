package statuspage

import (
	"encoding/json"
	"flag"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/version/pin"
)

var update = flag.Bool("update", false, "rewrite the files in testdata, and runbook.html")

var pageTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// busyStatus is the status of a node on which everything happens at once, whose JSON the server's tests keep.
func busyStatus(t *testing.T) *status.Status {
	t.Helper()
	doc, err := os.ReadFile("../testdata/status.json")
	expect.NoError(t, err)
	var st status.Status
	expect.NoError(t, json.Unmarshal(doc, &st))
	st.Complete(true, "")
	return &st
}

// The page of the node and that of a database.
func TestPage(t *testing.T) {
	for only, path := range map[string]string{"": "testdata/page.html", "names": "testdata/db.html"} {
		p := newPage(busyStatus(t), only, pageTime)
		var b strings.Builder
		if err := pageTemplate().Execute(&b, p); err != nil { // without style and script
			t.Fatal(err)
		}
		if *update {
			expect.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		}
		want, err := os.ReadFile(path)
		expect.NoError(t, err)
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// The policy allows the page's own style and script, to the byte, and nothing else.
func TestPagePolicy(t *testing.T) {
	page, err := Render(status.Status{}, "", pageTime)
	expect.NoError(t, err)
	for tag, directive := range map[string]string{"style": "style-src ", "script": "script-src "} {
		_, rest, _ := strings.Cut(string(page), "<"+tag+">")
		source, _, closed := strings.Cut(rest, "</"+tag+">")
		if !closed || len(source) < 1000 || strings.Count(string(page), "<"+tag) != 1 || !strings.Contains(Policy, directive+digest(source)+";") {
			t.Errorf("the %s of %d bytes is not what %q allows", tag, len(source), Policy)
		}
	}
	if strings.Contains(Policy, "unsafe") {
		t.Error(Policy)
	}
	if regexp.MustCompile(`<[^>]* style=`).Match(page) {
		t.Error("the policy forbids the attribute style")
	}
}

// Whatever stands in a name, an error or a path is text on the pages.
func TestStatusPageEscapes(t *testing.T) {
	const evil = `"><script>alert(1)</script>&'`
	st := status.Status{Node: evil, Build: evil, Source: evil, SourceError: evil, ReloadError: evil, Warnings: []string{evil}, Problems: []string{evil},
		Zone: evil, ShardID: evil, ZooKeeper: &status.ZooKeeper{Error: evil}, Waiting: []status.Wait{{What: evil, Blocks: true}},
		Peers:  map[string]status.Peer{evil + "2": {Error: evil, Zone: evil, Build: evil}, "ok": {Health: evil, Level: evil, Waiting: []status.Wait{{What: evil}}}},
		Events: []status.Event{{ID: evil, DB: evil, Version: evil, Kind: evil, Reason: evil}},
		DBs: map[string]status.DB{
			evil: {Error: evil, Pin: &pin.File{Version: evil, By: evil, Exclude: []string{evil}, Reasons: map[string]string{evil: evil}},
				Events: []status.Event{{ID: evil, DB: evil, Version: evil, Kind: evil, Reason: evil}},
				Versions: map[string]status.Version{evil: {Path: evil, NumPartitions: 2, TargetReplication: 1, Nodes: map[string]status.OnNode{
					evil: {State: evil, Error: evil, Detail: evil, Partitioner: evil, Current: true, Partitions: []int{0}, Progress: &status.Progress{}},
					"x":  {State: evil, Detail: evil, Partitions: []int{0}},
				}}}},
		}}
	st.Complete(false, evil)
	for only, least := range map[string]int{"": 24, evil: 20} {
		page, err := Render(st, only, pageTime)
		expect.NoError(t, err)
		text := strings.Replace(string(page), pageScript, "", 1)
		if strings.Count(text, "<script") != 1 || !strings.Contains(text, "<script></script>") { // our own
			t.Errorf("not escaped:\n%s", text)
		}
		if n := strings.Count(html.UnescapeString(text), evil); n < least {
			t.Errorf("only %d of the texts are on the page:\n%s", n, text)
		}
	}
}

// What somebody has to look at comes first.
func TestOrder(t *testing.T) {
	on := func(state status.State, current bool) status.DB {
		return status.DB{Versions: map[string]status.Version{"1": {Nodes: map[string]status.OnNode{"n": {State: state, Current: current}}}}}
	}
	failed := on(status.Active, true)
	failed.Versions["2"] = status.Version{Nodes: map[string]status.OnNode{"n": {State: status.Error, Error: "damaged"}}}
	st := &status.Status{Node: "n", DBs: map[string]status.DB{"a": on(status.Active, true), "b": failed, "c": on(status.Building, false), "d": on(status.Active, true)}}
	st.Complete(true, "")
	var order []string
	for _, r := range newPage(st, "", pageTime).DBs {
		order = append(order, r.Name)
	}
	if diff := cmp.Diff([]string{"c", "b", "a", "d"}, order); diff != "" {
		t.Error(diff)
	}
}

// Many versions that failed hide neither a load nor that there are more of them.
func TestManyFailedVersions(t *testing.T) {
	versions := map[string]status.Version{"1": {Nodes: map[string]status.OnNode{"n": {Progress: &status.Progress{Bytes: 100, BytesDone: 50}}}}}
	for _, name := range []string{"2", "3", "4", "5", "6"} {
		versions[name] = status.Version{Nodes: map[string]status.OnNode{"n": {Error: "broken", State: status.Error}}}
	}
	st := &status.Status{Node: "n", DBs: map[string]status.DB{"words": {Versions: versions}}}
	var got []string
	for _, n := range newPage(st, "", pageTime).DBs[0].Notes {
		got = append(got, n.Text)
	}
	if diff := cmp.Diff([]string{"1: loading, 50 %", "6: broken", "5: broken", "4: broken", "and 2 more"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A hint is on the page of the node and on that of its database, with the section of the runbook.
func TestHintsOnPages(t *testing.T) {
	st := status.Status{Node: "n", DBs: map[string]status.DB{"words": {Hints: []string{"1 of 3 nodes hold nothing"}}}}
	for _, only := range []string{"", "words"} {
		page, err := Render(st, only, pageTime)
		if err != nil || !strings.Contains(string(page), `1 of 3 nodes hold nothing <a href="/-/runbook#partitions-that-are-divided-unevenly"`) {
			t.Errorf("the page of %q: %v\n%s", only, err, page)
		}
	}
}
