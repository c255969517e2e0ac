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
	"sequins/test/expect"
	"sequins/test/sequencefiles"
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

// A load finds what the ends of files tell where their heads fit several functions.
func TestEndsRefute(t *testing.T) {
	files := telling(40_000)
	w := newWorld(t)
	w.write(files, sequencefiles.WriterOptions{})
	plan, _ := w.loadRefuting(Options{})
	if plan.Partitioner != shard.Spark || !plan.Aligned {
		t.Errorf("%v, aligned %v", plan.Partitioner, plan.Aligned)
	}
	w.compare(plan, model(files, shard.Spark, 3), all(plan))
}

func avroFile(t *testing.T, records []rec) []byte {
	t.Helper()
	schema := avro.MustParse(`{"type":"record","name":"r","fields":[{"name":"k","type":"string"},{"name":"v","type":"string"}]}`)
	var b bytes.Buffer
	w := check(ocf.NewWriter(&b, schema))(t)
	for _, r := range records {
		expect.NoError(t, w.Encode(map[string]any{"k": r.key, "v": r.value}))
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}

// A file that is damaged between its head and its end is for Load to refuse.
func TestDamagedMiddleIsPlanned(t *testing.T) {
	for _, offset := range []int{2, 4, 8} {
		w := newWorld(t)
		files := cut(shard.Hadoop, 3, keys(40_000)...)
		w.write(files, sequencefiles.WriterOptions{Compression: sequencefiles.Block, BlockSize: 100_000})
		path := filepath.Join(w.root, "db/1", files[0].name)
		raw := check(os.ReadFile(path))(t)
		clear(raw[len(raw)-len(raw)/offset:][:len(raw)/offset-20])
		w.put(files[0].name, raw)
		l := newLoader(w.src, w.store, nil, Options{})
		plan := check(l.Plan(t.Context(), "db", "1"))(t)
		if err := l.Load(t.Context(), plan, []int{0}); !errors.Is(err, sequencefile.ErrCorrupt) || !strings.Contains(err.Error(), files[0].name) {
			t.Error(err)
		}
	}
}
