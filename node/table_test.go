package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/observe/status"
	"sequins/test/expect"
)

// look has the node list the databases of the source once more.
func (r *running) look() {
	r.f.t.Helper()
	before := r.health.Report().Refreshed
	r.Refresh()
	r.eventually("it lists the source", func() bool { return r.health.Report().Refreshed.After(before) })
}

// A database that becomes a table is served on from what was a version of it, and one that is a table from the beginning has
// no version: both have an error that names the format.
func TestTableAsDatabase(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("lake", "day=1", 1, "trout")
	log := func(db string) string { return filepath.Join(f.root, db, "_delta_log") }
	expect.NoError(t, os.Mkdir(log("lake"), 0o755))
	r := f.run()
	r.serves("fruit", "1")
	r.eventually("it is ready", func() bool { return r.get("/readyz").status == 200 })
	f.put("fruit", "2", 1, fruit...)
	expect.NoError(t, os.Mkdir(log("fruit"), 0o755))
	refused := func(db string) bool {
		s := r.Status()
		return strings.Contains(s.DBs[db].Error, "_delta_log/ makes it a table of Delta Lake") &&
			strings.Contains(strings.Join(s.Warnings, "\n"), "the versions of "+db+" cannot be listed: "+filepath.Join(f.root, db)+":")
	}
	r.Refresh()
	r.eventually("both are refused", func() bool { return refused("fruit") && refused("lake") })
	for range 3 {
		r.look()
	}
	if s := r.Status(); len(s.DBs["lake"].Versions) > 0 || s.SourceError != "" {
		t.Errorf("versions %v, %q", s.DBs["lake"].Versions, s.SourceError)
	}
	if a := r.get("/fruit/fig"); a.body != "fig of 1" {
		t.Errorf("fruit: %+v", a)
	}
	if n := strings.Count(f.log.String(), "_delta_log/ makes it a table"); n != 2 {
		t.Errorf("the log has the reason %d times:\n%s", n, f.log)
	}
	expect.NoError(t, os.Remove(log("fruit")))
	f.remove("lake")
	r.Refresh()
	r.serves("fruit", "2")
	r.eventually("all is well", func() bool { return len(r.Status().Warnings) == 0 && len(r.Status().DBs) == 1 })
}

// A source that is a table itself is an error of the source.
func TestTableAsSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	metadata := filepath.Join(f.root, "metadata")
	expect.NoError(t, os.Mkdir(metadata, 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(metadata, "v1.metadata.json"), nil, 0o644))
	f.put("data", "day=1", 1, "trout")
	f.put("fruit", "2", 1, fruit...)
	r.Refresh()
	r.eventually("it is refused", func() bool { return strings.Contains(r.Status().SourceError, "makes it a table of Iceberg") })
	if got := r.get("/fruit/fig"); got.body != "fig of 1" || len(r.Status().DBs) != 1 {
		t.Errorf("%+v, %v", got, r.Status().DBs)
	}
	f.remove("metadata")
	r.Refresh()
	r.serves("fruit", "2")
	r.serves("data", "day=1")
}

// What lies beside databases and versions is said, in the log once, and changes nothing.
func TestBesideVersions(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	for _, dir := range []string{"lost+found", "fruit/lost+found"} {
		expect.NoError(t, os.Mkdir(filepath.Join(f.root, dir), 0))
	}
	for _, file := range []string{"part-00000", "fruit/part-00000"} {
		expect.NoError(t, os.WriteFile(filepath.Join(f.root, file), []byte("x"), 0o644))
	}
	r := f.run()
	r.serves("fruit", "1")
	for range 3 {
		r.look()
	}
	s := r.Status()
	for _, finding := range s.Findings() {
		if finding.Level != status.LevelNote {
			t.Errorf("unhealthy: %+v", finding)
		}
	}
	for _, want := range []string{`"lost+found" in the source is left out: this cannot be the name of a database`, `"lost+found" in the source is left out: this cannot be the name of a version of fruit`,
		"files of the source that are in no database are not read (part-00000)", "files of fruit that are in no version are not read (part-00000)"} {
		if !strings.Contains(strings.Join(s.Warnings, "\n"), want) {
			t.Errorf("the status lacks %q: %q", want, s.Warnings)
		}
		if n := strings.Count(strings.ReplaceAll(f.log.String(), `\"`, `"`), want); n != 1 {
			t.Errorf("the log has %q %d times", want, n)
		}
	}
}
