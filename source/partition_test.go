package source_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sequins/source"
)

func TestColumns(t *testing.T) {
	for name, want := range map[string][]source.Column{
		"part-0":       nil,
		"x=1":          nil, // a file
		"a/x=1/part-0": nil,
		"_x=1/part-0":  nil,
		"day=2026-01-31/city=Bad%20Ems%2F1/part-0":                  {{"day", "2026-01-31", false}, {"city", "Bad Ems/1", false}},
		"a=__HIVE_DEFAULT_PARTITION__/b=/part-r-0/data":             {{"a", "__HIVE_DEFAULT_PARTITION__", true}, {"b", "", false}},
		"a%3Db=c=d/x=%C3%A4/y=ä/z=%/w=%4/v=%zz1/part-0":             {{"a=b", "c=d", false}, {"x", "ä", false}, {"y", "ä", false}, {"z", "%", false}, {"w", "%4", false}, {"v", "%zz1", false}},
		strings.Repeat("a=1/", source.MaxPartitionDepth+1) + "part": {{"a", "1", false}, {"a", "1", false}, {"a", "1", false}, {"a", "1", false}, {"a", "1", false}, {"a", "1", false}, {"a", "1", false}, {"a", "1", false}},
	} {
		if diff := cmp.Diff(want, source.Columns(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Any name has at most the columns that it has equals signs, and what is added under it is a file, hidden or in a directory.
func FuzzColumns(f *testing.F) {
	for _, name := range []string{"a=1/b=%2F/part-0", "a=/_x", "a=1/data", "x/data", "=/=/=", "%=%/%", "a=1/../b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		columns := source.Columns(name)
		if len(columns) > source.MaxPartitionDepth || len(columns) > strings.Count(name, "=") {
			t.Errorf("%q: %+v", name, columns)
		}
		for _, c := range columns {
			if c.Name == "" || utf8.ValidString(name) && !strings.Contains(name, "%") && !strings.Contains(name, c.Name+"="+c.Value) {
				t.Errorf("%q: %+v", name, c)
			}
		}
		var keys source.Keys
		keys.Add(source.File{Name: name})
		if c := keys.Contents(); len(c.Files)+len(c.Hidden)+len(c.Dirs) > 1 {
			t.Errorf("%q: %+v", name, c)
		}
	})
}
