package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/version/pin"
)

// pinSource is a source with versions 1, 2 and 3, of which 3 is incomplete.
func pinSource(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	for _, name := range []string{"1/part-0", "1/_SUCCESS", "2/part-0", "2/_SUCCESS", "3/part-0"} {
		writeFile(t, filepath.Join(source, "words", name), "x")
	}
	return source
}

// written returns what the file has.
func written(t *testing.T, source string) pin.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(source, "words", pin.FileName))
	expect.NoError(t, err)
	f, err := pin.Parse(data)
	expect.NoError(t, err)
	if !strings.Contains(f.By, "@") {
		t.Errorf("by is %q", f.By)
	}
	f.By = ""
	return f
}

// nodeServing starts what answers as a node that serves a version of words from a source, and returns its URL.
func nodeServing(t *testing.T, source, version string) string {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status.Status{Node: "a:1", Source: source, DBs: map[string]status.DB{"words": {Versions: map[string]status.Version{
			version: {Nodes: map[string]status.OnNode{"a:1": {State: status.Active, Current: true}}}}}}}) // the test fails if it is not sent
	}))
	t.Cleanup(node.Close)
	return node.URL
}

func TestPinCommands(t *testing.T) {
	source := pinSource(t)
	do := func(want pin.File, args ...string) {
		t.Helper()
		r := sequins(t, append(args, "--source", source)...)
		r.wants(t, exitOK)
		if got := written(t, source); !got.Equal(want) {
			t.Errorf("%v: wrote %+v, want %+v", args, got, want)
		}
		if !strings.HasPrefix(r.stdout, filepath.Join(source, "words", pin.FileName)+":\n") {
			t.Errorf("%v: printed %s", args, r.stdout)
		}
	}
	do(pin.File{Version: "1", Reasons: map[string]string{"1": "half"}}, "pin", "words", "1", "--reason", "half")
	sequins(t, "rollback", "words", "2", "--source", source).wants(t, exitFailure, "sequins: words is pinned to version 1: ")
	do(pin.File{}, "unpin", "words")
	bad := map[string]string{"2": "bad"}
	do(pin.File{Exclude: []string{"2"}, Reasons: bad}, "rollback", "words", "2", "--reason", "bad")
	do(pin.File{Version: "1", Exclude: []string{"2"}, Reasons: bad}, "pin", "words", "1")
	do(pin.File{Version: "1", Exclude: []string{"2"}, Reasons: map[string]string{"1": "good", "2": "bad"}}, "pin", "words", "1", "--reason", "good")
	do(pin.File{Exclude: []string{"2"}, Reasons: bad}, "unpin", "words")
	sequins(t, "rollback", "words", "1", "--source", source).wants(t, exitFailure, "sequins: there is no complete version of words before 1")
	sequins(t, "pin", "words", "2", "--source", source).wants(t, exitFailure, "sequins: version 2 of words is excluded")
	do(pin.File{Version: "2"}, "pin", "words", "2", "--force")
	do(pin.File{Version: "9"}, "pin", "words", "9", "--force")
	sequins(t, "pin", "words", "1", "--until", "1h", "--source", source).wants(t, exitOK)
	if got := written(t, source); got.Version != "1" || got.Until.IsZero() {
		t.Errorf("--until wrote %+v", got)
	}
}

func TestPinErrors(t *testing.T) {
	source := pinSource(t)
	path := filepath.Join(source, "words", pin.FileName)
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "", []string{"pin", "words"}},
		{exitUsage, `"../x" cannot be the name of a database`, []string{"pin", "../x", "1"}},
		{exitUsage, `"_x" cannot be the name of a version`, []string{"pin", "words", "_x"}},
		{exitUsage, "--until", []string{"pin", "words", "1", "--until", "tomorrow"}},
		{exitUsage, "--until", []string{"pin", "words", "1", "--until", "2020-01-01T00:00:00Z"}},
		{exitUsage, "", []string{"rollback", "words"}},
		{exitAbsent, filepath.Join(source, "words", "9") + " is not in the source", []string{"rollback", "words", "9"}},
		{exitAbsent, filepath.Join(source, "words", "9") + " is not in the source", []string{"pin", "words", "9"}},
		{exitAbsent, "", []string{"rollback", "none", "1"}},
		{exitAbsent, "open " + filepath.Join(source, "wrds") + ": no such file or directory; did you mean words?", []string{"pin", "wrds", "1"}},
	} {
		r := sequins(t, append(test.args, "--source", source)...)
		r.wants(t, test.code, "sequins: "+test.want)
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Fatalf("%v wrote %s", test.args, path)
		}
	}
	writeFile(t, path, "versio = 1\n")
	sequins(t, "unpin", "words", "--source", source).wants(t, exitFailure, "sequins: "+path+": line 1: unknown key versio")
}

// TestRollbackOfANode: a node follows, the command waits for it, and the next version goes live.
func TestRollbackOfANode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := demoSource(t, dir)
	bad := demoFirst + "x"
	_, err := writeDemo(source, bad)
	expect.NoError(t, err)
	writeFile(t, filepath.Join(dir, "sequins.conf"), "source = \""+source+"\"\nlocal_store = \""+filepath.Join(dir, "store")+"\"\nrefresh_period = \"100ms\"\n")
	s := startServer(t, dir)
	s.awaitVersion(demoPath, bad)
	r := sequins(t, "rollback", demoDB, bad, "--source", source, "--server", s.base, "--wait", "--timeout", "1m")
	r.wants(t, exitOK)
	if !strings.Contains(r.stdout, "localhost serves "+demoFirst+"\n") {
		t.Errorf("printed %s", r.stdout)
	}
	s.awaitVersion(demoPath, demoFirst)
	next := demoFirst + "y"
	_, err = writeDemo(source, next)
	expect.NoError(t, err)
	s.awaitVersion(demoPath, next)

	r = sequins(t, "pin", demoDB, next, "--source", source, "--server", s.base, "--wait", "--timeout", "1m")
	r.wants(t, exitOK)
	_, body := s.get("/" + demoDB)
	var st status.DB
	expect.NoError(t, json.Unmarshal([]byte(body), &st))
	if st.Pin == nil || st.Pin.Version != next {
		t.Errorf("--wait has ended when the node's pin is %+v; printed %s", st.Pin, r.stdout)
	}
	r = sequins(t, "pin", demoDB, "9", "--force", "--source", source, "--server", s.base, "--wait", "--timeout", "1s")
	r.wants(t, exitFailure, "sequins: after 1s: 1 of 1 nodes do not follow")
	for answer, want := range map[int]int{http.StatusUnauthorized: exitUnreadable, http.StatusNotFound: exitFailure} {
		refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
		r = sequins(t, "pin", demoDB, "9", "--force", "--source", source, "--server", refusing.URL, "--wait", "--timeout", "2m")
		refusing.Close()
		if r.code != want || strings.Contains(r.stderr, "after 2m0s") {
			t.Errorf("refused with %d: exit code %d: %s", answer, r.code, r.stderr)
		}
	}
	r = sequins(t, "unpin", demoDB, "--source", source, "--server", s.base, "--wait", "--timeout", "1m")
	r.wants(t, exitOK)
	if !strings.Contains(r.stdout, "localhost serves "+next+"\n") {
		t.Errorf("printed %s", r.stdout)
	}
	s.stop(syscall.SIGTERM)
}

// TestUnpinWaits for the newest version, unless it cannot be loaded or is held.
func TestUnpinWaits(t *testing.T) {
	source := pinSource(t)
	var states atomic.Pointer[[]status.OnNode] // of version 2, one for each answer; the last one stays
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := *states.Load()
		states.Store(new(now[min(1, len(now)-1):]))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status.Status{Node: "a:1", Source: source, DBs: map[string]status.DB{"words": {Versions: map[string]status.Version{
			"1": {Nodes: map[string]status.OnNode{"a:1": {State: status.Active, Current: !now[0].Current}}},
			"2": {Nodes: map[string]status.OnNode{"a:1": now[0]}}}}}}) // the test fails if it is not sent
	}))
	defer node.Close()
	for _, of := range [][]status.OnNode{
		{{State: status.Available}, {State: status.Building}, {State: status.Active, Current: true}},
		{{State: status.Building}, {State: status.Held}},
		{{State: status.Building}, {State: status.Building, Error: "damaged"}},
	} {
		want := "a:1 serves 1\n"
		if of[len(of)-1].Current {
			want = "a:1 serves 2\n"
		}
		states.Store(&of)
		r := sequins(t, "unpin", "words", "--source", source, "--server", node.URL, "--wait", "--timeout", "1m")
		if r.wants(t, exitOK); !strings.Contains(r.stdout, want) || len(*states.Load()) > 1 {
			t.Errorf("it has printed %s, and the states that were not asked for are %v", r.stdout, *states.Load())
		}
	}
	states.Store(&[]status.OnNode{{State: status.Building}})
	r := sequins(t, "unpin", "words", "--source", source, "--server", node.URL, "--wait", "--timeout", "10ms")
	r.wants(t, exitFailure, "sequins: after 10ms: 1 of 1 nodes do not follow")
	if !strings.Contains(r.stdout, "a:1 serves 1, not yet version 2\n") {
		t.Errorf("it has printed %s", r.stdout)
	}
}

// The configuration that happens to be there does not decide which cluster is rolled back.
func TestRollbackOfAnotherSource(t *testing.T) {
	source, other := pinSource(t), pinSource(t)
	node := nodeServing(t, source, "2")
	for configured, code := range map[string]int{other: exitFailure, source + "/": exitOK, "file://" + source: exitOK} {
		t.Setenv("SEQUINS_SOURCE", configured)
		r := sequins(t, "rollback", "words", "2", "--server", node)
		if r.code != code || code == exitFailure && !strings.Contains(r.stderr, node+" reads "+source+", and the configuration here has the source "+other) {
			t.Errorf("%s: %+v", configured, r)
		}
	}
	if _, err := os.Stat(filepath.Join(other, "words", pin.FileName)); !os.IsNotExist(err) {
		t.Error("the file of the other source was written")
	}
}
