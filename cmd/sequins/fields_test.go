package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		if want := fmt.Sprintf("%d files with %d records are good\n", f.Meta.Files, f.Meta.Records); r.stdout != want {
			t.Errorf("%s: verify says %q, want %q", f.Name, r.stdout, want)
		}
	}
}

// Without the field of the key, whole records are read.
func TestWithoutKeyField(t *testing.T) {
	f := harness.FixtureByName(t, "parquet-snappy")
	path := filepath.Join(f.Dir, f.Meta.Names[0])
	sequins(t, "cat", path, "--value", "v").wants(t, exitUsage, "sequins: --value needs --key")
	sequins(t, "cat", path, "--key", "nope").wants(t, exitFailure, "sequins: "+path+": the fields that are set do not fit the records: key: there is no field \"nope\"")
	r := sequins(t, "cat", path)
	r.wants(t, exitOK)
	for line := range strings.Lines(r.stdout) {
		if !json.Valid([]byte(strings.ReplaceAll(strings.TrimSpace(line), `\\`, `\`))) || !strings.HasPrefix(line, "{") {
			t.Fatalf("a line %q", line)
		}
	}
	r = sequins(t, "inspect", "--json", path)
	r.wants(t, exitOK)
	var got struct{ Files []inspection }
	expect.NoError(t, json.Unmarshal([]byte(r.stdout), &got))
	i := got.Files[0]
	if i.Kind != kindParquet || *i.Records == 0 || i.Partitioners != nil || fmt.Sprint(i.Header["rows"]) != fmt.Sprint(*i.Records) || !strings.Contains(fmt.Sprint(i.Header["fields"]), f.Meta.KeyField+" ") {
		t.Errorf("%+v", i)
	}
	r = sequins(t, "inspect", "--key", f.Meta.KeyField, path)
	r.wants(t, exitOK)
	has(t, r.stdout, path+": Parquet", fmt.Sprintf("records %d", *i.Records), "key "+f.Meta.KeyField)
}

// A version may be named as a column is. The directory that is given shows where it begins.
func TestPartitionColumnsOfAVersionNamedLikeOne(t *testing.T) {
	f := harness.FixtureByName(t, "avro-null")
	raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
	expect.NoError(t, err)
	root := filepath.Join(t.TempDir(), "source")
	version := filepath.Join(root, "words", "dt=2026-01-31")
	writeFile(t, filepath.Join(version, "hour=7", "part-00000.avro"), string(raw))
	writeFile(t, filepath.Join(root, "words", "dt=2026-02-01", "part-00000.avro"), string(raw))
	r := sequins(t, "inspect", "--json", "--partition-columns", "--key", f.Meta.KeyField, version)
	r.wants(t, exitOK)
	if !strings.Contains(r.stdout, `,\"hour\":7}`) || strings.Contains(r.stdout, `\"dt\"`) {
		t.Errorf("inspect: %.500s", r.stdout)
	}
	sequins(t, "verify", "--partition-columns", version).wants(t, exitOK)
	// Outside of the source of the configuration, which is not replaced.
	other, conf := filepath.Join(t.TempDir(), "x", "words", "1", "hour=7", "part-00000.avro"), filepath.Join(filepath.Dir(root), "sequins.conf")
	writeFile(t, other, string(raw))
	writeFile(t, conf, fmt.Sprintf("source = %q\nlocal_store = %q\n", root, filepath.Join(other, "../../../../store")))
	sequins(t, "cat", "--key", f.Meta.KeyField, "--config", conf, other).wants(t, exitOK)
}

// The columns in the names of directories are added as by a load.
func TestPartitionColumnsOfFiles(t *testing.T) {
	f := harness.FixtureByName(t, "avro-null")
	raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
	expect.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "words", "1")
	for _, day := range []string{"hour=07", "hour=8"} {
		writeFile(t, filepath.Join(dir, day, "part-00000.avro"), string(raw))
	}
	path := filepath.Join(dir, "hour=07", "part-00000.avro")
	plain := catRecords(t, "--key", f.Meta.KeyField, path)
	for i, r := range catRecords(t, "--key", f.Meta.KeyField, "--partition-columns", path) {
		if want := strings.TrimSuffix(plain[i].Value, "}") + `,"hour":7}`; r.Value != want {
			t.Fatalf("%s, want %s", r.Value, want)
		}
	}
	writeFile(t, filepath.Join(dir, "hour=x", "part-00000.avro"), string(raw)) // now the column is text in all files
	if r := catRecords(t, "--key", f.Meta.KeyField, "--partition-columns", path); !strings.HasSuffix(r[0].Value, `,"hour":"07"}`) {
		t.Errorf("%s", r[0].Value)
	}
}
