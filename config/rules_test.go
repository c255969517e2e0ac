package config

import (
	"reflect"
	"strings"
	"testing"
)

// The limits in all tags are values of their keys, all forms exist, and the defaults meet them.
func TestTags(t *testing.T) {
	c := Default()
	c.Source = "/d"
	var d decoder
	for _, table := range []any{c, c.allDBs()} {
		for _, f := range fieldsOf("", reflect.ValueOf(table)) {
			for _, limit := range []string{f.tag.Get("min"), f.tag.Get("max")} {
				if limit != "" && number(f.parse(limit)) < 0 {
					t.Errorf("%s: %s", f.key, limit)
				}
			}
			if name := f.tag.Get("form"); name != "" && forms[name] == nil {
				t.Errorf("%s: there is no form %q", f.key, name)
			}
			d.field(f)
		}
	}
	if len(d.problems)+len(d.warnings) > 0 {
		t.Errorf("%v, %v", d.problems, d.warnings)
	}
}

// Numbers are finite, and lists are bounded.
func TestLimits(t *testing.T) {
	for doc, want := range map[string]string{
		"gate.max_growth = inf":                               "sequins.conf:2: gate.max_growth: must be from 0 to 1000000, not +Inf",
		"gate.max_shrink = nan":                               "sequins.conf:2: gate.max_shrink: must be from 0 to 1, not NaN",
		"db.x.partitions = 1e5":                               "sequins.conf:2: db.x.partitions: must be an integer",
		"db.x.partitions = 65537":                             "sequins.conf:2: db.x.partitions: must be from 0 to 65536, not 65537",
		"zk.servers = [" + strings.Repeat(`"a",`, 1001) + "]": "sequins.conf:2: zk.servers: has 1001 entries, more than 1000",
	} {
		if _, _, err := load("source = \"/d\"\n" + doc); report(err) != want {
			t.Errorf("%.50s: %.200s, want %s", doc, report(err), want)
		}
	}
}
