//go:build integration

package writers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// tableFormats are the names of formats by those of the databases that tables.py and tables.scala write.
var tableFormats = map[string]string{"delta": "Delta Lake", "iceberg": "Iceberg", "paimon": "Paimon", "sink": "Spark's streaming sink"}

// TestTables: tables of Delta Lake, Iceberg, Paimon and the sink of Spark's streaming, as their own writers make them, are refused
// by name, as a database and as a version. Nothing of them is served, and what is beside them is.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	process.OutputOf(t, venv.Python(t, "tables.txt"), "tables.py", source)
	expect.NoError(t, os.CopyFS(source, os.DirFS(filepath.Join(sparkDir(t, "tables"), "source"))))
	c := process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: "settle = \"0s\"\n", Sections: "[db.good]\nkey = \"k\"\nvalue = \"v\"\n"}
	for db := range tableFormats {
		c.Sections += fmt.Sprintf("[db.%s]\nkey = \"k\"\nvalue = \"v\"\n[db.%s-version]\nkey = \"k\"\nvalue = \"v\"\n", db, db)
	}
	n := process.Serve(t, c, "good", "1")
	if r := n.Get(t, "/good/fig"); r.Code != 200 || string(r.Body) != "green" {
		t.Errorf("beside the tables: %d %q", r.Code, r.Body)
	}
	code, listed := sequins(t, "versions", "--source", source)
	if code != 6 {
		t.Errorf("versions: exit code %d\n%s", code, listed)
	}
	for db, format := range tableFormats {
		isRefused(t, n, db, filepath.Join(source, db), format, string(listed))
		isRefused(t, n, db+"-version", filepath.Join(source, db+"-version", "1"), format, string(listed))
	}
}

// isRefused checks that the status, the log and sequins versions, which has printed listed, name the format of a table, and that
// nothing of it is served.
func isRefused(t *testing.T, n *process.Node, db, dir, format, listed string) {
	t.Helper()
	says := func(line string) bool {
		return strings.Contains(line, dir+": ") && strings.Contains(line, " makes it a table of "+format)
	}
	n.WaitFor(t, db+" has an error", func() bool {
		_, status := sequins(t, "status", "--json", "--server", n.Addr, db)
		return slices.ContainsFunc(strings.Split(string(status), "\n"), says)
	})
	for what, text := range map[string]string{"the log": n.Log(), "sequins versions": listed} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), says) {
			t.Errorf("%s does not say that %s is a table of %s:\n%s", what, dir, format, text)
		}
	}
	for _, key := range []string{"apple", "fig", "plum"} {
		if r := n.Get(t, "/"+db+"/"+key); r.Code == 200 {
			t.Errorf("/%s/%s: %d %q", db, key, r.Code, r.Body)
		}
	}
}
