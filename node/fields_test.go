package node

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"sequins/load"
	"sequins/test/expect"
)

// putAvro writes a version of two files whose records have the fields k, v and w: a key, "<key> of v" and "<key> of w".
func (f *fixture) putAvro(db, version string, keys ...string) {
	f.t.Helper()
	dir := filepath.Join(f.root, db, version)
	expect.NoError(f.t, os.MkdirAll(dir, 0o755))
	schema := avro.MustParse(`{"type":"record","name":"r","fields":[{"name":"k","type":"string"},{"name":"v","type":"string"},{"name":"w","type":"string"}]}`)
	for i := range 2 {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("part-%05d.avro", i)))
		expect.NoError(f.t, err)
		w, err := ocf.NewWriter(file, schema)
		expect.NoError(f.t, err)
		for j, key := range keys {
			if j%2 == i {
				expect.NoError(f.t, w.Encode(map[string]any{"k": key, "v": key + " of v", "w": key + " of w"}))
			}
		}
		expect.NoError(f.t, w.Close())
		expect.NoError(f.t, file.Close())
	}
	expect.NoError(f.t, os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644))
}

// configured loads by one partitioner, from the fields k and value.
func configured(value, partitioner string) Reloadable {
	return Reloadable{DB: func(string) DB {
		return DB{Load: load.Options{Fields: load.Fields{Key: "k", Value: value}, Partitioner: partitioner}}
	}}
}

// readAs reports whether every key has the value of a field.
func (r *running) readAs(of string) bool {
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.status != http.StatusOK || got.body != key+" of "+of {
			return false
		}
	}
	return true
}

// A version that is served keeps its fields and its partitioner while it cannot be loaded from those that are configured now: when a block is loaded
// again, and after a restart. The next version has the new ones.
func TestServedVersionKeepsItsFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.putAvro("fruit", "1", fruit...)
	r := f.run(func(o *Options) { o.Reloadable = configured("v", "auto") })
	r.serves("fruit", "1")
	r.eventually("it is complete", func() bool { return f.log.count("load finished") == 1 })
	served := f.dir("fruit", "1")
	f.flip("fruit", "1", "00000.block")
	r.Apply(configured("none", "string"))
	for _, key := range fruit {
		r.get("/fruit/" + key)
	}
	r.eventually("it is mended from the same field", func() bool {
		return f.log.count("a block is damaged") > 0 && r.readAs("v")
	})

	r.stop()
	expect.NoError(t, os.Remove(filepath.Join(served, "00000.block")))
	r = f.run(func(o *Options) { o.Reloadable = configured("none", "spark") })
	r.serves("fruit", "1")
	r.eventually("it is completed from the same field", func() bool { return r.readAs("v") })

	r.Apply(configured("w", "auto"))
	f.putAvro("fruit", "2", fruit...)
	r.Refresh()
	r.serves("fruit", "2")
	r.eventually("the next version has the new field", func() bool { return r.readAs("w") })
	if got := f.manifest("fruit", "2").Fields; got == nil || got.Value != "w" {
		t.Errorf("fields of version 2: %+v", got)
	}
}

// What is configured anew is compared with what is served at once, not at the next of the comparisons, which have grown rare.
func TestReloadIsCompared(t *testing.T) {
	f := newFixture(t)
	f.putAvro("fruit", "1", fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Reloadable = configured("v", "auto") })
		time.Sleep(7*24*time.Hour + time.Minute)
		before := n.Set([]byte("fruit")).Current()
		n.Apply(configured("w", "auto"))
		time.Sleep(time.Minute)
		if now := n.Set([]byte("fruit")).Current(); now == before || now.Name != "1" {
			t.Errorf("current is %+v", now)
		}
	})
}

// Another key, value or partitioner is another input of the version: it is loaded and switched to, and the former one is served until then.
func TestOptionsChanged(t *testing.T) {
	for name, now := range map[string]Reloadable{"value": configured("w", "auto"), "partitioner": configured("v", "string")} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.putAvro("fruit", "1", fruit...)
			r := f.run(func(o *Options) { o.Reloadable = configured("v", "auto") })
			r.serves("fruit", "1")
			before := r.Set([]byte("fruit")).Current()
			r.eventually("it is complete", func() bool { return f.log.count("load finished") == 1 })
			g, open := f.source.shut()
			r.Apply(now)
			<-g.waiting // it is being loaded
			if !r.readAs("v") || r.Set([]byte("fruit")).Current() != before {
				t.Error("the former content is not served while the other is loaded")
			}
			r.eventually("the status says so", func() bool {
				return r.onNode("fruit", "1").Diverged && strings.Contains(r.onNode("fruit", "1").Error, "are configured differently")
			})
			open()
			field := now.DB("fruit").Load.Fields.Value
			r.eventually("the other one is served", func() bool {
				s := r.Status()
				return r.Set([]byte("fruit")).Current() != before && r.readAs(field) && len(s.Problems) == 0 && f.onDisk("fruit") == "1"
			})
			r.stop()
			r = f.run(func(o *Options) { o.Reloadable = now })
			r.serves("fruit", "1")
			if !r.readAs(field) || f.log.count("load started") != 2 {
				t.Errorf("after a restart: %d loads", f.log.count("load started"))
			}
		})
	}
}

// A version with an error, which is not served, is planned anew with what is configured then.
func TestFieldsAreMended(t *testing.T) {
	f := newFixture(t)
	f.putAvro("fruit", "1", fruit...)
	r := f.run(func(o *Options) { o.Reloadable = configured("x", "auto") })
	r.eventually("it fails", func() bool { return strings.Contains(r.onNode("fruit", "1").Error, `there is no field "x"`) })
	r.Apply(configured("v", "auto"))
	r.Refresh()
	r.serves("fruit", "1")
	r.eventually("with the field", func() bool { return r.get("/fruit/fig").body == "fig of v" })
}
