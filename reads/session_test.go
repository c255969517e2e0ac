package reads_test

import (
	"log/slog"
	"testing"
	"time"

	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// upgraded returns a set in which v2 has replaced v1, and v3 is prepared; the value of "k" is the version's name.
func upgraded(t *testing.T) *version.Set {
	t.Helper()
	set := version.NewSet("db")
	for _, name := range []string{"v1", "v2", "v3"} {
		v := version.New(version.Info{DB: "db", Content: contents.Of(name), Partitions: 1, Following: version.Solo{}})
		expect.NoError(t, v.Put(0, versions.Open(t, 0, 1, map[string]string{"k": name})))
		set.Prepare(v)
		if name == "v3" {
			break
		}
		expect.NoError(t, set.Activate(contents.In(name)))
	}
	set.Version(contents.In("v1")).Retire()
	t.Cleanup(func() {
		for _, name := range []string{"v1", "v2", "v3"} {
			versions.Close(t, set, contents.In(name))
		}
	})
	return set
}

// A client that names versions gets a value of those, or a reason.
func TestSessions(t *testing.T) {
	rd := reads.New(catalog{"db": upgraded(t), "none": version.NewSet("none")}, reads.Options{Logger: slog.New(slog.DiscardHandler)})
	defer rd.Stop()
	for _, test := range []struct {
		db, atLeast, exact string
		want               reads.Outcome
		value              string
	}{
		{"db", "", "", reads.Found, "v2"},
		{"db", "v1", "", reads.Found, "v2"},
		{"db", "v2", "", reads.Found, "v2"},
		{"db", "v3", "", reads.Behind, ""},
		{"db", "", "v1", reads.Found, "v1"},
		{"db", "", "v2", reads.Found, "v2"},
		{"db", "", "v3", reads.Gone, ""}, // prepared: not for clients
		{"db", "", "v0", reads.Gone, ""},
		{"db", "v2", "v1", reads.Behind, ""},
		{"none", "v2", "", reads.Unready, ""},
		{"none", "", "v2", reads.Unready, ""},
	} {
		r := rd.NewRead()
		q := reads.Query{DB: []byte(test.db), Key: []byte("k"), AtLeast: []byte(test.atLeast), Exact: []byte(test.exact)}
		r.Begin(time.Now())
		if got := r.Do(&q); got != test.want || string(r.Bytes) != test.value {
			t.Errorf("at least %q, exactly %q: outcome %d with %q, want %d with %q", test.atLeast, test.exact, got, r.Bytes, test.want, test.value)
		}
		r.Release()
	}
}

// Nodes remove a replaced version at different times. Who asks for it by name is told that it is gone, also by a node that
// still has it, and needs a partition from nodes that do not.
func TestReplacedVersionElsewhere(t *testing.T) {
	set := version.NewSet("db")
	for _, name := range []string{"v1", "v2"} {
		v := version.New(version.Info{DB: "db", Content: contents.Of(name), Partitions: 1, Partitioner: shard.String, Following: replicas{of: [][]string{{"a:1"}}}})
		set.Prepare(v)
		expect.NoError(t, set.Activate(contents.In(name)))
	}
	set.Version(contents.In("v1")).Retire()
	rd := reads.New(catalog{"db": set}, reads.Options{Proxy: fails(proxy.ErrNoPeers), Logger: slog.New(slog.DiscardHandler)})
	defer rd.Stop()
	for _, test := range []struct {
		exact string
		want  reads.Outcome
	}{{"", reads.Unreachable}, {"v1", reads.Gone}, {"v2", reads.Unreachable}} {
		q := reads.Query{DB: []byte("db"), Key: []byte("k"), Exact: []byte(test.exact)}
		r := rd.NewRead()
		r.Begin(time.Now())
		if got := r.Do(&q); got != test.want {
			t.Errorf("exactly %q: outcome %d, want %d", test.exact, got, test.want)
		}
		r.Release()
		r.Begin(time.Now())
		if got := r.DoBatch(&q, [][]byte{[]byte("k")}); got != test.want {
			t.Errorf("exactly %q, a batch: outcome %d, want %d", test.exact, got, test.want)
		}
		r.Release()
	}
}
