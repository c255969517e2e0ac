//go:build integration

package writers

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/process"
	"sequins/test/venv"
)

// nulls writes versions of databases with 5 null keys in 300 records, in two files each, by pyarrow and fastavro.
const nulls = `
import os, sys
import fastavro, pyarrow as pa, pyarrow.parquet as pq
source = sys.argv[1]
rows = [{"k": None if i % 60 == 7 else "key-%04d" % i, "v": "value %d" % i} for i in range(300)]
schema = {"type": "record", "name": "r", "fields": [{"name": "k", "type": ["null", "string"]}, {"name": "v", "type": "string"}]}
for db in ["in", "out", "strict"]:
    for kind in ["parquet", "avro"]:
        d = os.path.join(source, db + "-" + kind, "1")
        os.makedirs(d)
        for half in [0, 1]:
            part = rows[half::2]
            name = os.path.join(d, "part-r-%05d.%s" % (half, kind))
            if kind == "parquet":
                pq.write_table(pa.Table.from_pylist(part, schema=pa.schema([("k", pa.string()), ("v", pa.string())])), name, row_group_size=50)
            else:
                with open(name, "wb") as f:
                    fastavro.writer(f, schema, part)
        open(os.path.join(d, "_SUCCESS"), "w").close()
`

// TestRecordErrors: records with null keys are left out up to max_record_errors, and one more fails the load.
func TestRecordErrors(t *testing.T) {
	source := t.TempDir()
	process.OutputOf(t, venv.Python(t, "requirements.txt"), "-c", nulls, source)
	var sections strings.Builder
	for db, limit := range map[string]int{"in": 5, "out": 4, "strict": 0} {
		for _, kind := range []string{"parquet", "avro"} {
			fmt.Fprintf(&sections, "[db.%s-%s]\nkey = \"k\"\nvalue = \"v\"\n[db.%s-%s.gate]\nmax_record_errors = %d\n", db, kind, db, kind, limit)
		}
	}
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Sections: sections.String()})
	for _, kind := range []string{"parquet", "avro"} {
		n.WaitCurrent(t, "in-"+kind, "1")
		for i := range 300 {
			r := n.Get(t, fmt.Sprintf("/in-%s/key-%04d", kind, i))
			if want := fmt.Sprintf("value %d", i); i%60 == 7 && r.Code != 404 || i%60 != 7 && (r.Code != 200 || string(r.Body) != want) {
				t.Errorf("%s, key %d: %d %s", kind, i, r.Code, r.Body)
			}
		}
		n.WaitLog(t, "records=295")
		n.WaitLog(t, "left_out=5")
		for db, text := range map[string]string{"out": "4 records were left out, and max_record_errors allows no more", "strict": "the key is null"} {
			n.WaitFor(t, db+"-"+kind+" fails", func() bool {
				v := n.Health(t)[db+"-"+kind]["1"]
				return strings.Contains(v.Error, text) && strings.Contains(v.Error, "part-r-")
			})
		}
	}
}
