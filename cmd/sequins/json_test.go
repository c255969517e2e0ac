package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// isJSON checks that an output is one document of JSON on one line, and returns it with a fixed indentation.
func isJSON(t *testing.T, out string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(out), &v); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v in %q", err, out)
	}
	text, err := json.MarshalIndent(v, "", "  ")
	expect.NoError(t, err)
	return string(text)
}

func TestVersionsJSON(t *testing.T) {
	source := t.TempDir()
	at := time.Date(2026, 1, 31, 8, 30, 0, 0, time.UTC)
	for name, content := range map[string]string{
		"words/1/part-0": "123", "words/1/_SUCCESS": "", "words/2/part-0": "12345678",
		"words/3/part-0": "1", "words/3/_delta_log/0": "", "words/no version/x": "", "empty/_x": "",
		"words/4/part-0": "1", "words/4/part-1": "22", "words/4/_SUCCESS": `{"filenames": ["part-0"]}`,
	} {
		path := filepath.Join(source, name)
		writeFile(t, path, content)
		expect.NoError(t, os.Chtimes(path, at, at))
	}
	r := sequins(t, "versions", "--source", source, "--json")
	r.wants(t, exitUnreadable, `note: "no version" in the source is left out: `, "sequins: "+source+"/words/3: this layout is not supported")
	got := isJSON(t, strings.ReplaceAll(r.stdout, source, "SOURCE"))
	got = regexp.MustCompile(`"error": "[^"]*_delta_log[^"]*"`).ReplaceAllString(got, `"error": "…"`)
	want := `{
  "databases": [
    {
      "database": "empty",
      "versions": []
    },
    {
      "database": "words",
      "versions": [
        {
          "bytes": 1,
          "complete": true,
          "files": 1,
          "left_out": [
            "part-1"
          ],
          "success_file": true,
          "version": "4",
          "written": "2026-01-31T08:30:00Z"
        },
        {
          "bytes": 1,
          "complete": false,
          "error": "…",
          "files": 1,
          "success_file": false,
          "version": "3",
          "written": "2026-01-31T08:30:00Z"
        },
        {
          "bytes": 8,
          "complete": false,
          "files": 1,
          "reason": "there is no _SUCCESS file yet",
          "success_file": false,
          "version": "2",
          "written": "2026-01-31T08:30:00Z"
        },
        {
          "bytes": 3,
          "complete": true,
          "files": 1,
          "success_file": true,
          "version": "1",
          "written": "2026-01-31T08:30:00Z"
        }
      ]
    }
  ],
  "source": "SOURCE"
}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// What cannot be listed at all has no JSON.
	r = sequins(t, "versions", "--source", source+"/none", "--json")
	r.wants(t, exitAbsent, "sequins: open "+source+"/none: no such file or directory")
	if r.stdout != "" {
		t.Errorf("%+v", r)
	}
	r = sequins(t, "versions", "--source", source, "--json", "word")
	if r.code != exitAbsent || !strings.Contains(r.stdout, "did you mean words?") {
		t.Errorf("%+v", r)
	}
}

func TestVerifyJSON(t *testing.T) {
	block, sequence, log := makeFiles(t)
	r := sequins(t, "verify", "--json", block, sequence, log)
	if r.code != exitOK || r.stdout != `{"good":true,"files":3,"records":23,"bad":[]}`+"\n" || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	spoil(t, block, 40)
	r = sequins(t, "verify", "--json", block, "/nowhere", log)
	if r.code != exitUnreadable || r.stderr != "sequins: 2 of 3 files are bad\n" {
		t.Errorf("%+v", r)
	}
	var got verification
	expect.NoError(t, json.Unmarshal([]byte(r.stdout), &got))
	for i := range got.Bad {
		got.Bad[i].Error = ""
	}
	want := verification{Files: 3, Records: 15, Bad: []badFile{{Path: block, Kind: "unreadable"}, {Path: "/nowhere", Kind: "absent"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The JSON of the status is that of the node, of the chosen databases.
func TestStatusJSON(t *testing.T) {
	s := serveRecords(t, "")
	s.await("/", "healthy", func(_ *http.Response, body string) bool { return strings.Contains(body, `"healthy":true`) })
	_, plain := s.get("/")
	r := sequins(t, "status", "--server", s.base, "--json")
	r.wants(t, exitOK)
	var want, got map[string]any
	expect.NoError(t, json.Unmarshal([]byte(plain), &want))
	expect.NoError(t, json.Unmarshal([]byte(r.stdout), &got))
	for _, m := range []map[string]any{want, got} {
		delete(m, "disk") // changes
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-node +command):\n%s", diff)
	}
	r = sequins(t, "status", "--server", s.base, "awkward", "--json")
	var one struct{ DBs map[string]any }
	expect.NoError(t, json.Unmarshal([]byte(r.stdout), &one))
	if len(one.DBs) != 1 || one.DBs["awkward"] == nil {
		t.Errorf("%+v", one)
	}
	if r = sequins(t, "status", "--server", s.base, "awkward"); !strings.Contains(r.stdout, "awkward") || strings.Contains(r.stdout, "numbers") {
		t.Errorf("%+v", r)
	}
	r = sequins(t, "status", "--server", "127.0.0.1:1", "--json")
	if r.code != exitUnreachable || r.stdout != "" {
		t.Errorf("%+v", r)
	}
	if r = sequins(t, "status", "--json", "--no-such-flag"); r.code != exitUsage || r.stdout != "" {
		t.Errorf("%+v", r)
	}
}
