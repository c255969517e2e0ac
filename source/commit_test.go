package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/source"
	"sequins/test/expect"
)

// names are those of the data files, separated by spaces.
func names(files []source.File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Name)
	}
	return strings.Join(all, " ")
}

// TestCommits is about versions that Databricks has written, as its runtime
// names and describes files.
func TestCommits(t *testing.T) {
	with := func(markers map[string]string, files ...string) memory {
		m := memory{}.with(files...)
		for name, data := range markers {
			m[name] = data
		}
		return m
	}
	const one, two, three = "part-00000-tid-1-aa-c000.parquet", "part-00001-tid-2-bb-c000.parquet", "part-00002-tid-3-cc-c000.parquet"
	added := func(names ...string) string {
		return fmt.Sprintf(`{"added": ["%s"], "removed": []}`, strings.Join(names, `","`))
	}
	tests := []struct {
		name       string
		src        memory
		want       string
		left       string
		incomplete string
		err        string
	}{
		{"a job that has begun", with(map[string]string{"_started_1": ""}, one), "", "", "there is _started_1 without _committed_1", ""},
		{"a job that is done", with(map[string]string{"_started_1": "", "_committed_1": added(one)}, one), one, "", "", ""},
		{"whose start is forgotten", with(map[string]string{"_committed_1": added(one)}, one), one, "", "", ""},
		{"an attempt that failed", with(map[string]string{"_started_1": "", "_committed_1": added(one)}, one, "part-00000-tid-1-zz-c000.parquet"),
			one, "part-00000-tid-1-zz-c000.parquet", "", ""},
		{"no transaction in the name", with(map[string]string{"_committed_1": added("part-0")}, "part-0", "part-1"), "part-0", "part-1", "", ""},
		{"two jobs", with(map[string]string{"_started_1": "", "_committed_1": added(one), "_started_2": "", "_committed_2": added(two)}, one, two),
			one + " " + two, "", "", ""},
		{"a second job that has begun", with(map[string]string{"_committed_1": added(one), "_started_2": ""}, one, two), "", "", "_started_2", ""},
		{"overwritten", with(map[string]string{"_committed_1": added(one), "_committed_2": `{"added": ["` + two + `"], "removed": ["` + one + `"]}`}, one, two),
			two, one, "", ""},
		{"overwritten and deleted", with(map[string]string{"_committed_1": added(one), "_committed_2": `{"added": ["` + two + `"], "removed": ["` + one + `"]}`}, two),
			two, "", "", ""},
		{"markers of an old job deleted", with(map[string]string{"_committed_2": added(two)}, one, two), one + " " + two, "", "", ""},
		{"one missing", with(map[string]string{"_committed_1": added(one, two)}, one), "", "", "lists " + two + ", which is not there", ""},
		{"vacuumed", with(map[string]string{"_committed_1": added(one), "_committed_vacuum7": `{"added": [], "removed": ["_started_3", "_committed_vacuum7"]}`, "_started_3": ""}, one, three),
			one, three, "", ""},
		{"only vacuumed", with(map[string]string{"_committed_vacuum7": `{"added":[],"removed":["_started_1"]}`}, one, "part-9"), one + " part-9", "", "", ""},
		{"paths", with(map[string]string{"_committed_1": added("s3://b/db/1/part-0", "/x/part-1")}, "part-0", "part-1"), "part-0 part-1", "", "", ""},
		{"_SUCCESS too", with(map[string]string{"_SUCCESS": "", "_committed_1": added(one)}, one, three), one + " " + three, "", "", ""},

		{"an empty commit", with(map[string]string{"_committed_1": ""}, one), "", "", "_committed_1 is truncated", ""},
		{"half a commit", with(map[string]string{"_committed_1": `{"added": ["` + one}, one), "", "", "_committed_1 is truncated", ""},
		{"no commit", with(map[string]string{"_committed_1": "done"}, one), "", "", "", "_committed_1 of /db/1: invalid character"},
		{"another kind", with(map[string]string{"_committed_1": `{"files": []}`}, one), "", "", "", "lists neither"},
		{"numbers", with(map[string]string{"_committed_1": `{"added": [1]}`}, one), "", "", "", "_committed_1"},
		{"names that lead outside", with(map[string]string{"_committed_1": added("../2/part-0")}, "part-0"), "", "", "which is not there", ""},
		{"in a directory", with(map[string]string{"_committed_1": added("part-0", "x/part-1")}, "part-0", "x/part-1"), "", "", "", "lists x/part-1, and files in directories are not read"},
		{"too large", with(map[string]string{"_committed_1": added(one) + strings.Repeat(" ", 18<<20), "_committed_2": added(one) + strings.Repeat(" ", 18<<20)}, one), "", "", "", "markers of more than"},
		{"too many", with(map[string]string{"_committed_1": `{"added": [` + strings.Repeat(`"",`, 2<<20) + `""]}`}, one), "", "", "", "lists more than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := source.List(t.Context(), tt.src, "db", "1", false)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			case err != nil:
				t.Fatal(err)
			case tt.incomplete != "" || l.Incomplete != "":
				if tt.incomplete == "" || !strings.Contains(l.Incomplete, tt.incomplete) {
					t.Errorf("incomplete because %q, want %q", l.Incomplete, tt.incomplete)
				}
				return
			}
			if diff := cmp.Diff([]string{tt.want, tt.left}, []string{names(l.Files), strings.Join(l.LeftOut, " ")}); diff != "" {
				t.Error(diff)
			}
		})
	}
	many := memory{}
	for i := range 2000 {
		many[fmt.Sprint("_committed_", i)] = added()
	}
	if _, err := source.List(t.Context(), many, "db", "1", false); err == nil || !strings.Contains(err.Error(), "more than 1000 files _committed_") {
		t.Errorf("many commits: %v", err)
	}
}

// TestManifestLeavesOut: files that a complete list in _SUCCESS does not contain
// are not data.
func TestManifestLeavesOut(t *testing.T) {
	version := func(files, listed int, more string) memory {
		m, list := memory{}, []string{}
		for i := range files {
			name := fmt.Sprintf("part-%05d", i)
			m[name] = "x"
			if i < listed {
				list = append(list, `"s3a://bucket/db/1/`+name+`"`)
			}
		}
		m["_SUCCESS"] = `{"filenames": [` + strings.Join(list, ",") + `]` + more + `}`
		return m
	}
	hadoop := manifest(t, "manifest-files.json")
	tests := []struct {
		name       string
		src        memory
		files, out int
	}{
		{"all", version(5, 5, ""), 5, 0},
		{"one is left out", version(5, 4, ""), 4, 1},
		{"by Hadoop's manifest", memory{"_SUCCESS": hadoop}.with("part-r-00000", "part-r-00001", "part-r-00002", "part-r-00003"), 3, 1},
		{"moved", memory{"_SUCCESS": strings.ReplaceAll(hadoop, "/db/1/", "/tmp/x/")}.with("part-r-00000", "part-r-00001", "part-r-00002", "part-r-00003"), 3, 1},
		{"the list stops at a hundred", version(250, 100, ""), 250, 0},
		{"and statistics say so", version(250, 100, `, "iostatistics": {"counters": {"committer_files_committed": 250}}`), 250, 0},
		{"or those of S3A", version(250, 100, `, "metrics": {"committer_commits_completed": 250}`), 250, 0},
		{"another limit", version(30, 20, `, "iostatistics": {"counters": {"committer_files_committed": 30}}`), 30, 0},
		{"all of a hundred", version(101, 100, `, "iostatistics": {"counters": {"committer_files_committed": 100, "x": -1}}`), 100, 1},
		{"all of many", version(251, 250, `, "iostatistics": {"counters": {"committer_files_committed": 250}}`), 250, 1},
		{"statistics of another kind", version(5, 4, `, "iostatistics": {"counters": {"committer_files_committed": "many"}}, "metrics": 1`), 4, 1},
		{"none is listed", version(5, 0, ""), 5, 0},
		{"no data is listed", memory{"_SUCCESS": `{"filenames": ["/db/1/_index"]}`}.with("_index", "part-0"), 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := source.List(t.Context(), tt.src, "db", "1", true)
			if err != nil || l.Incomplete != "" || len(l.Files) != tt.files || len(l.LeftOut) != tt.out {
				t.Errorf("%d files, %d left out, incomplete %q, %v; want %d and %d", len(l.Files), len(l.LeftOut), l.Incomplete, err, tt.files, tt.out)
			}
		})
	}
}

// TestFingerprint: it differs wherever a file does.
func TestFingerprint(t *testing.T) {
	seen := map[[32]byte]string{}
	for name, src := range map[string]memory{
		"none": {}, "one": {"a": "x"}, "another": {"b": "x"}, "two": {"a": "x", "b": "x"}, "longer": {"a": "xx"},
	} {
		l, err := source.List(t.Context(), src, "db", "1", false)
		expect.NoError(t, err)
		if other, found := seen[l.Fingerprint]; found {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[l.Fingerprint] = name
	}
	src := memory{"a": "x", "_logs": "x"}
	l, err := source.List(t.Context(), src, "db", "1", false)
	if err != nil || seen[l.Fingerprint] != "" {
		t.Errorf("hidden files do not count: %v", err)
	}
	if diff := cmp.Diff([]source.File{{Name: "a", Size: 1}}, l.Files, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// FuzzCommits: no commit makes List access a name outside the version.
func FuzzCommits(f *testing.F) {
	f.Add(`{"added": ["part-0", "../x", "/db/1/../y"], "removed": ["a/b"]}`)
	f.Add(`{"added": null}`)
	f.Fuzz(func(t *testing.T, commit string) {
		src := guarded{memory{"_committed_1": commit, "part-0": "x", "a/b": "x"}, t}
		if l, err := source.List(t.Context(), src, "db", "1", false); err != nil && l.Incomplete != "" {
			t.Errorf("incomplete because %q, and %v", l.Incomplete, err)
		}
	})
}
