package node

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	return Reloadable{Load: func(string) load.Options {
		return load.Options{Fields: load.Fields{Key: "k", Value: value}, Partitioner: partitioner}
	}}
}

// A version that is served keeps its fields and its partitioner, whatever is configured later: when a block is loaded
// again, and after a restart. The next version has the new ones.
func TestServedVersionKeepsItsFields(t *testing.T) {
	f := newFixture(t)
	f.putAvro("fruit", "1", fruit...)
	r := f.run(func(o *Options) { o.Reloadable = configured("v", "auto") })
	r.serves("fruit", "1")
	all := func(of string) bool {
		for _, key := range fruit {
			if got := r.get("/fruit/" + key); got.status != http.StatusOK || got.body != key+" of "+of {
				return false
			}
		}
		return true
	}
	r.eventually("it is complete", func() bool { return f.log.count("load finished") == 1 })
	r.Apply(configured("w", "string"))
	f.flip("fruit", "1", "00000.block")
	for _, key := range fruit {
		r.get("/fruit/" + key)
	}
	r.eventually("it is mended from the same field", func() bool {
		return f.log.count("a block is damaged") > 0 && all("v")
	})

	r.stop()
	expect.NoError(t, os.Remove(filepath.Join(f.store, "data", "fruit", "1", "00000.block")))
	r = f.run(func(o *Options) { o.Reloadable = configured("w", "spark") })
	r.serves("fruit", "1")
	r.eventually("it is completed from the same field", func() bool { return all("v") })

	r.Apply(configured("w", "auto"))
	f.putAvro("fruit", "2", fruit...)
	r.Refresh()
	r.serves("fruit", "2")
	r.eventually("the next version has the new field", func() bool { return all("w") })
	if got := f.manifest("fruit", "2").Fields; got == nil || got.Value != "w" {
		t.Errorf("fields of version 2: %+v", got)
	}
}

// A version with an error, which is not served, is planned anew with what is configured then.
func TestFieldsAreMended(t *testing.T) {
	f := newFixture(t)
	f.putAvro("fruit", "1", fruit...)
	r := f.run(func(o *Options) { o.Reloadable = configured("x", "auto") })
	r.eventually("it fails", func() bool { return strings.Contains(r.node("fruit", "1").Error, `there is no field "x"`) })
	r.Apply(configured("v", "auto"))
	r.Refresh()
	r.serves("fruit", "1")
	r.eventually("with the field", func() bool { return r.get("/fruit/fig").body == "fig of v" })
}

// Plans of older releases do not tell the fields: then what is wrong is said.
func TestUnknownFieldsChanged(t *testing.T) {
	f := newFixture(t)
	f.putAvro("fruit", "1", fruit...)
	r := f.run(func(o *Options) { o.Reloadable = configured("v", "auto") })
	r.serves("fruit", "1")
	r.eventually("it is complete", func() bool { return f.log.count("load finished") == 1 })
	m := f.manifest("fruit", "1")
	r.stop()
	m.Fields = nil
	data, err := m.MarshalJSON()
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(f.store, "data", "fruit", "1", "MANIFEST.json"), data, 0o644))
	r = f.run(func(o *Options) { o.Reloadable = configured("v", "auto") })
	r.serves("fruit", "1")
	r.Apply(configured("w", "auto"))
	f.flip("fruit", "1", "00000.block")
	for _, key := range fruit {
		r.get("/fruit/" + key)
	}
	r.eventually("the error is told", func() bool { return strings.Contains(r.node("fruit", "1").Error, load.ErrFieldsChanged.Error()) })
}
