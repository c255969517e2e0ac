package status_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
)

// Each setting that differs is reported, with its values and nodes.
func TestCompare(t *testing.T) {
	nodes := map[string]status.Settings{
		"a:1": {"storage.block_size": "'4KiB'", "keep_versions": "1", status.SettingBuild: "1.2", "db.words.key": "'id'"},
		"b:1": {"storage.block_size": "'8KiB'", "keep_versions": "1", status.SettingBuild: "1.2"},
		"c:1": {"storage.block_size": "'8KiB'", "keep_versions": "2", status.SettingBuild: "1.3", "new_key": "1"},
		"old": {status.SettingBuild: "1.1"},
	}
	var got []string
	for _, d := range status.Compare(nodes) {
		got = append(got, d.String())
	}
	want := []string{
		"db.words.key differs: the value for all databases on b:1, c:1, old; 'id' on a:1",
		"keep_versions differs: 1 on a:1, b:1; 2 on c:1",
		"storage.block_size differs: '8KiB' on b:1, c:1; '4KiB' on a:1",
		"version of sequins differs: 1.2 on a:1, b:1; 1.1 on old; 1.3 on c:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	delete(nodes, "a:1")
	delete(nodes, "c:1")
	if got := status.Compare(nodes); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// What other nodes say is bounded.
func TestCompareIsBounded(t *testing.T) {
	large := status.Settings{}
	for i := range 20_000 {
		large[fmt.Sprintf("key%05d%s", i, strings.Repeat("x", 1000))] = strings.Repeat("\xff\xfe", 1000)
	}
	other := status.Settings{}
	for key := range large {
		other[key] = "1"
	}
	all := status.Compare(map[string]status.Settings{"a": large, "b": other})
	if len(all) != 100 || len(all[0].String()) > 1000 {
		t.Errorf("%d differences, the first of %d bytes", len(all), len(all[0].String()))
	}
}

// Differences in the configuration are a warning; other versions of the program are shown alone.
func TestHealthOfDifferences(t *testing.T) {
	health := func(settings ...string) status.Status {
		st := status.Status{Node: "a", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{"1": {Nodes: map[string]status.OnNode{"a": {State: status.Active, Current: true}}}}}}}
		for _, s := range settings {
			st.Differences = append(st.Differences, status.Difference{Setting: s})
		}
		st.Complete(true, "")
		return st
	}
	if st := health(status.SettingBuild, "source"); !st.Healthy {
		t.Error(st.Health)
	}
	for _, st := range []status.Status{health(status.SettingBuild, "settle"), health("settle", "gate.max_shrink")} {
		if want := "Serving 1 database, but settle differs."; st.Health != want || st.Level != status.LevelWarn {
			t.Errorf("%s %q, want %q", st.Level, st.Health, want)
		}
	}
}
