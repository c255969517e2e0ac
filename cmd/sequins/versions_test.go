package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

func TestVersions(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	at := time.Date(2026, 1, 31, 8, 30, 0, 0, time.UTC)
	put := func(name, content string) {
		t.Helper()
		path := filepath.Join(source, name)
		writeFile(t, path, content)
		expect.NoError(t, os.Chtimes(path, at, at))
	}
	put("words/1/part-0", "123")
	put("words/1/part-1", "4567")
	put("words/1/_SUCCESS", "")
	put("words/2/part-0", "12345678")
	put("birds/7/part-0", "1")
	put("birds/7/_SUCCESS", `{"filenames": ["birds/7/part-0", "birds/7/part-1"]}`)
	put("no db/1/part-0", "1")
	put("words/no version/part-0", "1")
	expect.NoError(t, os.MkdirAll(filepath.Join(source, "empty"), 0o755))
	conf := filepath.Join(dir, "sequins.conf")
	writeFile(t, conf, "source = \""+source+"\"\nlocal_store = \""+filepath.Join(dir, "store")+"\"\n[db.words]\nrequire_success_file = true\n")

	r := sequins(t, "versions", "--config", conf)
	r.wants(t, exitOK, `note: "no db" in the source is left out: this cannot be the name of a database`, `note: "no version" in the source is left out: this cannot be the name of a version of words`)
	want := `DATABASE  VERSION  FILES  SIZE  WRITTEN           COMPLETE
birds     7        1      1 B   2026-01-31 08:30  no: _SUCCESS lists /birds/7/part-1, which is not there
empty     -        -      -     -                 there are no versions
words     2        1      8 B   2026-01-31 08:30  no: there is no _SUCCESS file yet
          1        2      7 B   2026-01-31 08:30  yes
`
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); !os.IsNotExist(err) {
		t.Error("it has made a local store")
	}

	r = sequins(t, "versions", "--source", source, "words", "none", "birds")
	if r.code != exitAbsent {
		t.Errorf("exit code %d", r.code)
	}
	want = `DATABASE  VERSION  FILES  SIZE  WRITTEN           COMPLETE
words     2        1      8 B   2026-01-31 08:30  no: there is no _SUCCESS file yet
          1        2      7 B   2026-01-31 08:30  yes
birds     7        1      1 B   2026-01-31 08:30  no: _SUCCESS lists /birds/7/part-1, which is not there
`
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("named databases (-want +got):\n%s", diff)
	}
	sequins(t, "versions", "--source", source, "../x").wants(t, exitUsage, "sequins: ")
	sequins(t, "versions", "--source", filepath.Join(dir, "nowhere")).wants(t, exitAbsent, "sequins: ")
	sequins(t, "versions").wants(t, exitFailure, "sequins: there is no configuration")
}

// TestVersionsReasons: the list shows the problem of each version.
func TestVersionsReasons(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	for name, content := range map[string]string{
		"words/1/part-0": "1", "words/1/_temporary/0/x": "1",
		"words/2/part-0": "1", "words/2/_started_7": "",
		"words/3/part-0": "1", "words/3/_committed_7": `{"added": ["part-0"], "removed": []}`, "words/3/part-1": "1",
		"words/4/part-0": "1", "words/4/_delta_log/0.json": "{}",
		"words/5/more/part-0": "1",
		"words/6/part-0":      "1", "words/6/_SUCCESS/x": "",
		"words/7/part-0": "1",
	} {
		writeFile(t, filepath.Join(source, name), content)
	}
	r := sequins(t, "versions", "--source", source)
	if r.code != exitUnreadable {
		t.Errorf("exit code %d", r.code)
	}
	for _, want := range []string{
		"no: there is a _temporary: a job is writing",
		"no: there is _started_7 without _committed_7",
		"yes, without part-1",
		"broken: ", "table of Delta Lake", "only directories (more)", "is a directory",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
}
