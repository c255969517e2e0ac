//go:build integration

package single

import (
	"encoding/json"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// punctuated are names of versions as Hive, Spark and clocks write them, ascending.
var punctuated = []string{"a+b", "a,b", "a:b", "a=2026-01-31", "a@b", "run@2026-01-31T10:00:00+01:00,a=b"}

// TestPunctuatedNames serves versions whose names have all characters of names, in a database of such a name: GET, a
// batch, an ordered read with a cursor, diff, pin and rollback, also after a restart.
func TestPunctuatedNames(t *testing.T) {
	t.Parallel()
	const db = "day=1+2,3@4:5"
	source, c := newNode(t)
	c.Extra += "\nkeep_versions = 10"
	c.Sections = "[db.\"" + db + "\"]\ncontent_type = \"text/x\"\n"
	writeVersion(t, source, db, "0", 2, 100, numbered("0"))
	n := process.Serve(t, c, db, "0")
	before := "0"
	for _, version := range punctuated {
		writeVersion(t, source, db, version, 2, 100, numbered(version))
		n.WaitCurrent(t, db, version)
		readPunctuated(t, n, db, version, before)
		before = version
	}
	n.Stop(t)
	n = process.Start(t, c)
	last := len(punctuated) - 1
	expectFirst(t, n, "/"+db+"/key-000042", punctuated[last], punctuated[last]+"/42")
	sequins(t, "rollback", db, punctuated[last], "--source", source, "--server", n.Addr)
	n.WaitCurrent(t, db, punctuated[last-1])
	for _, version := range punctuated[:last] {
		sequins(t, "pin", db, version, "--source", source)
		n.WaitCurrent(t, db, version)
	}
	for _, db := range []string{db, url.QueryEscape(db)} {
		if r := n.Get(t, "/readyz?db="+db); r.Code != 200 {
			t.Errorf("/readyz?db=%s: %d %s", db, r.Code, r.Body)
		}
	}
	if out := sequins(t, "versions", "--source", source, "--config", "/dev/null"); !strings.Contains(out, punctuated[last]) {
		t.Errorf("sequins versions: %s", out)
	}
}

// readPunctuated reads a version in every way.
func readPunctuated(t *testing.T, n *process.Node, db, version, before string) {
	t.Helper()
	value := version + "/42"
	n.Expect(t, "/"+db+"/key-000042", 200, version, value)
	n.Expect(t, "/"+url.PathEscape(db)+"/key-000042", 200, version, value)
	n.Expect(t, "/"+db+"/key-000042?proxy="+version, 200, version, value)
	n.Expect(t, "/"+db+"/key-000042?proxy="+url.QueryEscape(version), 200, version, value)
	client := n.Client()
	defer client.Close()
	for _, field := range []string{"X-Sequins-Version", "X-Sequins-At-Least"} {
		if r, err := client.Do("GET", "/"+db+"/key-000042", field+": "+version+"\r\n"); err != nil || r.Code != 200 || r.Version() != version {
			t.Errorf("%s: %s: %+v, %v", field, version, r, err)
		}
	}
	r, err := client.Send("POST", "/"+db, "Content-Type: application/json\r\n", []byte(`{"keys":["key-000042","none"]}`))
	if err != nil || r.Code != 200 || r.Version() != version || !strings.Contains(string(r.Body), value) {
		t.Errorf("a batch of %s: %+v, %v", version, r, err)
	}
	scanPunctuated(t, n, db, version)
	out := sequins(t, "diff", db, before, version, "--server", n.Addr, "--json")
	var report struct{ Changed int }
	if json.Unmarshal([]byte(out), &report) != nil || report.Changed != 100 {
		t.Errorf("diff of %s and %s: %s", before, version, out)
	}
	if r := n.Get(t, "/"+db+"?diff="+before+".."+version); r.Code != 200 {
		t.Errorf("unescaped diff: %d %s", r.Code, r.Body)
	}
}

// scanPunctuated reads a version in order, in pages.
func scanPunctuated(t *testing.T, n *process.Node, db, version string) {
	t.Helper()
	target, read := "/"+db+"?prefix=key-&limit=40", 0
	for pages := 0; target != "" && pages < 10; pages++ {
		r := n.Get(t, target)
		if r.Code != 200 || r.Version() != version {
			t.Fatalf("%s: %d of %q: %.200s", target, r.Code, r.Version(), r.Body)
		}
		target = ""
		for line := range strings.Lines(string(r.Body)) {
			var record struct{ Key, Cursor string }
			expect.NoError(t, json.Unmarshal([]byte(line), &record))
			switch {
			case record.Key != "":
				read++
			case record.Cursor != "":
				target = "/" + db + "?prefix=key-&limit=40&after=" + record.Cursor
			}
		}
	}
	if read != 100 {
		t.Errorf("%d records of %s in order", read, version)
	}
}

// sequins runs a command that must succeed, and returns what it prints.
func sequins(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(process.Binary(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("sequins %q: %v: %s", args, err, out)
	}
	return string(out)
}
