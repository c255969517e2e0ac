package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/internal/human"
	"sequins/test/expect"
	"sequins/test/harness"
)

// fieldFixtures returns the fixtures of Avro and Parquet.
func fieldFixtures(t *testing.T) []harness.Fixture {
	t.Helper()
	all := slices.DeleteFunc(harness.Fixtures(t), func(f harness.Fixture) bool { return f.Meta.Format != "avro" && f.Meta.Format != "parquet" })
	if len(all) < 10 {
		t.Fatalf("%d fixtures", len(all))
	}
	return all
}

// records returns the lines of cat --json.
func catRecords(t *testing.T, args ...string) (records []dataRecord) {
	t.Helper()
	r := sequins(t, append([]string{"cat", "--json"}, args...)...)
	r.wants(t, exitOK)
	for d := json.NewDecoder(strings.NewReader(r.stdout)); d.More(); {
		var line struct {
			Key, Value string
			KeyBytes   []byte `json:"key_base64"`
			ValueBytes []byte `json:"value_base64"`
		}
		expect.NoError(t, d.Decode(&line))
		records = append(records, dataRecord{Key: line.Key + string(line.KeyBytes), Value: line.Value + string(line.ValueBytes)})
	}
	return records
}

// Records of Avro and Parquet are printed as a load would store them, with the fields of flags or of a configuration.
func TestFields(t *testing.T) {
	for _, f := range fieldFixtures(t) {
		conf := filepath.Join(t.TempDir(), "sequins.conf")
		text := fmt.Sprintf("source = %q\n[db.%q]\nkey = %q\n", harness.FixturesDir(t), f.Name, f.Meta.KeyField)
		args := []string{"--key", f.Meta.KeyField}
		if f.Meta.ValueField != "" {
			text += fmt.Sprintf("value = %q\n", f.Meta.ValueField)
			args = append(args, "--value", f.Meta.ValueField)
		}
		writeFile(t, conf, text)
		for _, name := range f.Meta.Names {
			path := filepath.Join(f.Dir, name)
			var want []dataRecord
			for r := range f.Of(t, name) {
				want = append(want, dataRecord{Key: string(r.Key), Value: string(r.Value)})
			}
			for _, flags := range [][]string{args, {"--config", conf}} {
				if got := catRecords(t, append(flags, path)...); !slices.Equal(got, want) {
					t.Errorf("%s, %v: %d records, want %d", path, flags, len(got), len(want))
				}
			}
		}
		r := sequins(t, append(args, "verify", f.Dir)...)
		r.wants(t, exitOK)
		if want := fmt.Sprintf("good: %s with %d records\n", human.Plural(f.Meta.Files, "file"), f.Meta.Records); r.stdout != want {
			t.Errorf("%s: verify says %q, want %q", f.Name, r.stdout, want)
		}
	}
}

// Without the field of the key, whole records are read.
func TestWithoutKeyField(t *testing.T) {
	f := harness.FixtureByName(t, "parquet-snappy")
	path := filepath.Join(f.Dir, f.Meta.Names[0])
	sequins(t, "cat", path, "--value", "nope").wants(t, exitFailure, "sequins: "+path+": the fields that are set do not fit the records: ")
	sequins(t, "cat", path, "--key", "nope").wants(t, exitFailure, "sequins: "+path+": the fields that are set do not fit the records: key: there is no field \"nope\"")
	r := sequins(t, "cat", path)
	r.wants(t, exitOK)
	lines := 0
	for line := range strings.Lines(r.stdout) {
		lines++
		if !json.Valid([]byte(strings.ReplaceAll(strings.TrimSpace(line), `\\`, `\`))) || !strings.HasPrefix(line, "{") {
			t.Fatalf("a line %q", line)
		}
	}
	if r := sequins(t, "cat", path, "--value", "id"); r.code != exitOK || strings.Count(r.stdout, "\n") != lines || strings.Contains(r.stdout, "{") {
		t.Errorf("one field alone: %+v", r)
	}
}
