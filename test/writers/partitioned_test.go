//go:build integration

package writers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// partitionedRecord is a line of records.ndjson.
type partitionedRecord struct{ Table, Key, Value string }

// Partitioned tables are served as pyarrow and Spark read them, with the columns of the directories behind those of the
// files.
func TestPartitionedTables(t *testing.T) {
	for name, write := range map[string]func(t *testing.T) (dir string){
		"pyarrow": func(t *testing.T) string {
			dir := t.TempDir()
			process.OutputOf(t, venv.Python(t, "requirements.txt"), "partitioned.py", dir)
			return dir
		},
		"Spark": func(t *testing.T) string { return sparkDir(t, "partitioned") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t)
			raw, err := os.ReadFile(filepath.Join(dir, "records.ndjson"))
			expect.NoError(t, err)
			var records []partitionedRecord
			config := process.Config{Source: dir, Store: t.TempDir()}
			for line := range bytes.Lines(raw) {
				var r partitionedRecord
				expect.NoError(t, json.Unmarshal(line, &r))
				if len(records) == 0 || records[len(records)-1].Table != r.Table {
					config.Sections += fmt.Sprintf("[db.%s]\nkey = \"k\"\npartition_columns = true\n", r.Table)
				}
				records = append(records, r)
			}
			serveAndCompare(t, config, records)
		})
	}
}

// serveAndCompare compares what a node serves with records.
func serveAndCompare(t *testing.T, config process.Config, records []partitionedRecord) {
	t.Helper()
	n := process.Start(t, config)
	client := n.Client()
	defer client.Close()
	for i, r := range records {
		if i == 0 || records[i-1].Table != r.Table {
			n.WaitCurrent(t, r.Table, "1")
		}
		answer, err := client.Get("/" + r.Table + "/" + r.Key)
		if err != nil || answer.Code != 200 {
			t.Fatalf("%s of %s: %+v, %v", r.Key, r.Table, answer, err)
		}
		if diff := cmp.Diff(tokens(t, []byte(r.Value)), tokens(t, answer.Body)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", r.Key, r.Table, diff)
		}
	}
	t.Logf("%d records", len(records))
}

// tokens returns the tokens of JSON, in their order.
func tokens(t *testing.T, doc []byte) (all []any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return all
		}
		all = append(all, token)
	}
}
