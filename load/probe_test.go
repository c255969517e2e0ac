package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"sequins/input/sequencefile"
	"sequins/shard"
)

// telling makes three files cut by spark that fit string as well, but for a run
// of keys at the end of each.
func telling(records int) []data {
	files := ambiguous(3, records)
	files[1].records = slices.Delete(files[1].records, records/4*3, records/4*3+1)
	for i := range files {
		n := len(files[i].records)
		for j := 0; len(files[i].records) < n+records/20; j++ {
			key := fmt.Sprintf("~%06d", j*7919)
			if shard.Spark.Partition([]byte(key), 3) == i && shard.String.Partition([]byte(key), 3) != i {
				files[i].records = append(files[i].records, rec{key: key, value: "last"})
			}
		}
	}
	return files
}

// The ends of files tell where their heads fit several functions, in every form
// of SequenceFile and in Avro.
func TestEndsAreSampled(t *testing.T) {
	files := telling(40_000)
	write := map[string]func(w *world){
		"none":      func(w *world) { w.write(files, sequencefile.WriterOptions{}) },
		"none, old": func(w *world) { w.write(files, sequencefile.WriterOptions{SyncInterval: 2000}) },
		"record":    func(w *world) { w.write(files, sequencefile.WriterOptions{Compression: sequencefile.Record}) },
		"block": func(w *world) {
			w.write(files, sequencefile.WriterOptions{Compression: sequencefile.Block, BlockSize: 100_000})
		},
		"block, snappy": func(w *world) {
			w.write(files, sequencefile.WriterOptions{Compression: sequencefile.Block, Codec: sequencefile.SnappyCodec})
		},
		"avro": func(w *world) {
			for _, f := range files {
				w.put(f.name, avroFile(t, f.records))
			}
		},
	}
	for name, write := range write {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			write(w)
			plan := check(w.plan(Options{Fields: Fields{Key: "k", Value: "v"}}))(t)
			if plan.Partitioner != shard.Spark || !plan.Aligned {
				t.Errorf("%v, aligned %v", plan.Partitioner, plan.Aligned)
			}
		})
	}
}

func avroFile(t *testing.T, records []rec) []byte {
	t.Helper()
	schema := avro.MustParse(`{"type":"record","name":"r","fields":[{"name":"k","type":"string"},{"name":"v","type":"string"}]}`)
	var b bytes.Buffer
	w := check(ocf.NewWriter(&b, schema))(t)
	for _, r := range records {
		if err := w.Encode(map[string]any{"k": r.key, "v": r.value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file that is damaged between its head and its end is for Load to refuse.
func TestDamagedMiddleIsPlanned(t *testing.T) {
	for _, offset := range []int{2, 4, 8} {
		w := newWorld(t)
		files := telling(40_000)
		w.write(files, sequencefile.WriterOptions{Compression: sequencefile.Block, BlockSize: 100_000})
		path := filepath.Join(w.root, "db/1", files[0].name)
		raw := check(os.ReadFile(path))(t)
		clear(raw[len(raw)-len(raw)/offset:][:len(raw)/offset-20])
		w.put(files[0].name, raw)
		l := New(w.src, w.store, nil, Options{})
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		if err := l.Load(t.Context(), plan, []int{0}, nil); !errors.Is(err, sequencefile.ErrCorrupt) || !strings.Contains(err.Error(), files[0].name) {
			t.Error(err)
		}
	}
}

// Values that hold the file's sync marker, with records of their own or with
// garbage behind it, mislead the sample at most: the version loads, and every
// value is right.
func TestFalseSyncMarkers(t *testing.T) {
	const seed = "a marker that is known"
	opts := sequencefile.WriterOptions{SyncSeed: seed}
	empty := sequenceFile(t, nil, opts)
	marker := "\xff\xff\xff\xff" + string(empty[len(empty)-16:])
	alien := string(sequenceFile(t, []rec{{key: "alien key", value: "v"}, {key: "alien key 2", value: "v"}}, opts)[len(empty):])
	for name, value := range map[string]string{
		"garbage": strings.Repeat(marker+"\x00\x01\x02garbage", 20),
		"records": strings.Repeat(marker+alien, 20),
		"lengths": strings.Repeat(marker+"\x7f\xff\xff\x00\x00\x00\x00\x08", 20),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			files := cut(shard.Spark, 3, sequential("%08d", 3000, 1)...)
			for i := range files {
				for j := range files[i].records {
					files[i].records[j].value = value
				}
			}
			w.write(files, opts)
			plan, _ := w.loadRefuting(Options{})
			w.compare(plan, model(files, plan.Partitioner, 3), all(plan))
		})
	}
}
