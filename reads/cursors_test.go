package reads_test

import (
	"context"
	"encoding/base64"
	"slices"
	"testing"

	"sequins/internal/content"
	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// Cursors of versions that have gone, that are not there yet, of other databases and of other contents.
func TestCursors(t *testing.T) {
	records := map[string]string{"a": "1", "b": "2", "c": "3"}
	v := func(name string, parts ...string) *version.Version {
		v := version.New(version.Info{DB: "db", Content: contents.Of(name, parts...), Partitions: 1, Partitioner: shard.String, Following: version.Solo{}})
		expect.NoError(t, v.Put(0, versions.Open(t, 0, 1, records)))
		return v
	}
	set, other := version.NewSet("db"), version.NewSet("other")
	set.Prepare(v("v1"))
	other.Prepare(v("v1"))
	for _, s := range []*version.Set{set, other} {
		expect.NoError(t, s.Activate(contents.In("v1")))
	}
	rd := reads.New(catalog{"db": set, "other": other}, reads.Options{Logger: quiet})
	r := rd.NewRead()
	scan := func(db string, q reads.Query, after []byte) ([]record, []byte, reads.Outcome) {
		q.DB = []byte(db)
		return collectScan(t, &r, &q, &reads.Range{After: after, Limit: 2})
	}
	got, cursor, o := scan("db", reads.Query{}, nil)
	if o != reads.Found || len(got) != 2 || cursor == nil {
		t.Fatalf("%v, %q, outcome %d", got, cursor, o)
	}
	check := func(what string, db string, q reads.Query, want reads.Outcome) {
		t.Helper()
		got, more, o := scan(db, q, cursor)
		if o != want || o == reads.Found && (more != nil || !slices.Equal(got, []record{{"c", "3"}})) {
			t.Errorf("%s: outcome %d, want %d; %v", what, o, want, got)
		}
	}
	check("current", "db", reads.Query{}, reads.Found)
	check("of another database", "other", reads.Query{}, reads.BadCursor)
	check("with the version", "db", reads.Query{Exact: []byte("v1")}, reads.Found)
	check("with another version", "db", reads.Query{Exact: []byte("v2")}, reads.Gone)
	check("with a later version", "db", reads.Query{AtLeast: []byte("v2")}, reads.Expired)
	set.Prepare(v("v2"))
	expect.NoError(t, set.Activate(contents.In("v2")))
	check("replaced", "db", reads.Query{}, reads.Found)
	gone := set.Remove(contents.In("v1"))
	check("removed", "db", reads.Query{}, reads.Expired)
	if err := gone.Close(context.Background()); err != nil {
		t.Error(err)
	}
	set.Prepare(v("v1", "other files"))
	check("loaded again from other files", "db", reads.Query{}, reads.Expired)
	behind := version.NewSet("db")
	behind.Prepare(v("v0"))
	expect.NoError(t, behind.Activate(contents.In("v0")))
	rd = reads.New(catalog{"db": behind}, reads.Options{Logger: quiet})
	r = rd.NewRead()
	check("on a node that is behind", "db", reads.Query{}, reads.Behind)
	behind.Prepare(v("v1"))
	for _, name := range []string{"v1", "v0"} {
		expect.NoError(t, behind.GoBack(contents.In(name)))
	}
	check("of a version that was rolled back", "db", reads.Query{}, reads.Expired)
	if err := behind.Remove(contents.In("v1")).Close(context.Background()); err != nil {
		t.Error(err)
	}
	check("of a version that was rolled back and removed", "db", reads.Query{}, reads.Expired)
}

// Within a name, a cursor goes on in the content that it was given out for, on every node that can read that content, and never in another one.
func TestCursorsWithinAName(t *testing.T) {
	first, second := contents.Of("v1", "first"), contents.Of("v1", "second")
	add := func(set *version.Set, c content.Content, value string) *version.Version {
		v := version.New(version.Info{DB: "db", Content: c, Partitions: 1, Partitioner: shard.String, Following: version.Solo{}})
		expect.NoError(t, v.Put(0, versions.Open(t, 0, 1, map[string]string{"a": value, "b": value})))
		set.Prepare(v)
		return v
	}
	switchTo := func(set *version.Set, c content.Content) {
		expect.NoError(t, set.Activate(c.Input))
	}
	read := func(set *version.Set, p reads.Proxy, after []byte) (value string, more []byte, o reads.Outcome) {
		rd := reads.New(catalog{"db": set}, reads.Options{Logger: quiet, Proxy: p})
		defer rd.Stop()
		r := rd.NewRead()
		got, more, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{After: after, Limit: 1})
		if len(got) > 0 {
			value = got[0].value
		}
		return value, more, o
	}
	here, there, away := version.NewSet("db"), version.NewSet("db"), version.NewSet("db")
	add(here, first, "1")
	switchTo(here, first)
	_, ofFirst, _ := read(here, nil, nil)
	add(here, second, "2")
	switchTo(here, second)
	_, ofSecond, _ := read(here, nil, nil)
	add(there, first, "1")
	switchTo(there, first)
	check := func(what string, set *version.Set, p reads.Proxy, after []byte, want string, outcome reads.Outcome) {
		t.Helper()
		if value, _, o := read(set, p, after); value != want || o != outcome {
			t.Errorf("%s: %q, outcome %d; want %q, %d", what, value, o, want, outcome)
		}
	}
	check("of the current content", here, nil, ofSecond, "2", reads.Found)
	check("of the content before", here, nil, ofFirst, "1", reads.Found)
	check("on a node that has not switched", there, nil, ofFirst, "1", reads.Found)
	check("of a content that a node lacks", there, nil, ofSecond, "", reads.Expired)
	waiting := add(there, second, "2")
	waiting.Withhold(true)
	check("of a content that a node has not judged", there, nil, ofSecond, "", reads.Behind)
	switchTo(there, second)
	check("after the other node has switched", there, nil, ofSecond, "2", reads.Found)
	here.Remove(first.Input)
	check("of a content that is gone", here, nil, ofFirst, "", reads.Expired)
	check("of the content that stays", here, nil, ofSecond, "2", reads.Found)

	v := version.New(version.Info{DB: "db", Content: first, Partitions: 1, Partitioner: shard.String, Following: peersOnly{}})
	away.Prepare(v)
	switchTo(away, first)
	asked := ""
	holder := proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
		asked = string(q.Content)
		return nil, proxy.ErrNoPeers
	})
	check("of a content whose block is on another node", away, holder, ofFirst, "", reads.Unreachable)
	if asked != first.Code() {
		t.Errorf("another node was asked for %q, want %q", asked, first.Code())
	}
}

// FuzzCursor goes on from anything. A cursor that is accepted is not the end of the world: the scan ends or is refused.
func FuzzCursor(f *testing.F) {
	block := func(t testing.TB) *version.Set {
		v := version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 0, Partitioner: shard.String, Following: version.Solo{}})
		set := version.NewSet("db")
		set.Prepare(v)
		expect.NoError(t, set.Activate(contents.In("v1")))
		return set
	}
	f.Add([]byte("AQJ2MQ"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rd := reads.New(catalog{"db": block(t)}, reads.Options{Logger: quiet})
		for _, after := range [][]byte{text, []byte(base64.RawURLEncoding.EncodeToString(text))} {
			r := rd.NewRead()
			if _, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{After: append([]byte{}, after...)}); o != reads.BadCursor {
				t.Errorf("%q: outcome %d", after, o)
			}
		}
	})
}
