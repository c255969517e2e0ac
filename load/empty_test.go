package load

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"sequins/shard"
	"sequins/test/sequencefiles"
)

// emptyParquet is a Parquet file with the columns k and v, and without rows.
func emptyParquet() []byte {
	leaf := func(name string) string { return "\x15\x0c\x25\x00\x18\x01" + name + "\x00" } // a required BYTE_ARRAY
	footer := "\x15\x02" +                                                                 // version 1
		"\x19\x3c" + "\x48\x01r\x15\x04\x00" + leaf("k") + leaf("v") + // the schema
		"\x16\x00" + "\x19\x0c" + "\x00" // no rows, in no row groups
	return []byte("PAR1" + footer + string(rune(len(footer))) + "\x00\x00\x00" + "PAR1")
}

// emptyFiles are files of each format without records.
func emptyFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{
		"sparkey":               sparkeyLog(t, nil),
		"sparkey, deletes only": sparkeyLog(t, []rec{{key: "a", deleted: true}, {key: "b", deleted: true}}),
		"avro":                  avroFile(t, nil),
		"parquet":               emptyParquet(),
	}
	for _, c := range []sequencefiles.Compression{sequencefiles.None, sequencefiles.Record, sequencefiles.Block} {
		files[fmt.Sprint("sequencefile ", c)] = sequenceFile(t, nil, sequencefiles.WriterOptions{Compression: c})
	}
	return files
}

// A version without a single record is an error, whatever its format, its partitioner and the partitions that are wanted
// of it; with AllowEmpty, and where it is served already, it is an empty version.
func TestNoRecords(t *testing.T) {
	fields := Fields{Key: "k", Value: "v"}
	for format, content := range emptyFiles(t) {
		for _, partitioner := range []string{"auto", "string", "hadoop"} {
			for _, success := range []bool{false, true} {
				for _, n := range []int{1, 5} {
					w := newWorld(t)
					for i := range n {
						name := fmt.Sprintf("part-r-%05d", i)
						if strings.HasPrefix(format, "sparkey") {
							name += ".spl"
						}
						w.put(name, content)
					}
					if success {
						w.put("_SUCCESS", nil)
					}
					of := fmt.Sprintf("%s, %s, %t, %d files", format, partitioner, success, n)
					_, err := w.plan(Options{Partitioner: partitioner, Fields: fields})
					if !errors.Is(err, ErrNoRecords) || !Faulty(err) || !strings.Contains(err.Error(), w.root+"/db/1") {
						t.Fatalf("%s: %v", of, err)
					}
					plan := w.load(Options{Partitioner: partitioner, Fields: fields, AllowEmpty: true}, n-1)
					w.compare(plan, model(nil, shard.String, n), []int{n - 1})
					served := Options{Fields: fields}.PlannedBy(plan.Manifest())
					if again, err := w.plan(served); err != nil || again.Manifest().Content() != plan.Manifest().Content() {
						t.Errorf("%s, served already: %+v, %v", of, again, err)
					}
				}
			}
		}
	}
}

// A file of 0 bytes is a part without records in a version of any format, and is counted; a version of nothing else is one
// without records.
func TestFilesOfZeroBytes(t *testing.T) {
	of := func(format string, records []rec) []byte {
		switch format {
		case FormatAvro:
			return avroFile(t, records)
		case FormatSparkey:
			return sparkeyLog(t, records)
		case FormatParquet:
			return fixtureFile(t, "parquet-snappy")
		}
		return sequenceFile(t, records, sequencefiles.WriterOptions{})
	}
	for _, format := range []string{FormatSequenceFile, FormatSparkey, FormatAvro, FormatParquet} {
		for _, partitioner := range []string{"auto", "string"} {
			for _, success := range []bool{false, true} {
				w := newWorld(t)
				suffix := ""
				if format == FormatSparkey {
					suffix = ".spl"
				}
				w.put("part-00000"+suffix, nil)
				w.put("part-00002"+suffix, nil)
				if success {
					w.put("_SUCCESS", nil)
				}
				name := fmt.Sprintf("%s, %s, %t", format, partitioner, success)
				opts := Options{Partitioner: partitioner, Fields: Fields{Key: "k", Value: "v"}}
				if format == FormatParquet {
					opts.Fields = Fields{Key: "id"}
				}
				if _, err := w.plan(opts); !errors.Is(err, ErrNoRecords) {
					t.Fatalf("%s, nothing else: %v", name, err)
				}
				w.put("part-00001"+suffix, of(format, []rec{{key: "a", value: "1"}, {key: "b", value: "2"}}))
				var p Progress
				l := newLoader(w.src, w.store, &p, opts)
				plan := check(l.Plan(t.Context(), "db", "1"))(t)
				if err := l.Load(t.Context(), plan, all(plan)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if n := p.Snapshot(); plan.Format != format || n.Files != 3 || n.FilesDone != 3 || n.Empty != 2 || n.Records < 2 {
					t.Errorf("%s: %s, %+v", name, plan.Format, n)
				}
			}
		}
	}
}

// One record anywhere is enough, and a node loads partitions without records of such a version.
func TestOneRecord(t *testing.T) {
	for _, partitioner := range []string{"auto", "string", "hadoop"} {
		for _, at := range []int{0, 17, 49} {
			w := newWorld(t)
			files := make([]data, 50)
			for i := range files {
				files[i].name = fmt.Sprintf("part-r-%05d", i)
			}
			key := ""
			for i := 0; shard.Hadoop.Partition([]byte(key), 50) != at; i++ {
				key = fmt.Sprint("key", i)
			}
			files[at].records = []rec{{key: key, value: "v"}}
			w.write(files, sequencefiles.WriterOptions{})
			plan := check(w.plan(Options{Partitioner: partitioner}))(t)
			want := model(files, plan.Partitioner, 50)
			holds := plan.Partitioner.Partition([]byte(key), 50)
			part := (holds + 1) % 50
			w.load(Options{Partitioner: partitioner}, part)
			w.compare(plan, want, []int{part})
		}
	}
}

// The search for a record opens the largest file, reads its beginning and ends; of other files it reads nothing.
func TestRecordIsFoundCheaply(t *testing.T) {
	w := newWorld(t)
	files := make([]data, 40)
	for i := range files {
		files[i].name = fmt.Sprintf("part-r-%05d", i)
	}
	for i, k := range keys(20_000) {
		files[20+i%2].records = append(files[20+i%2].records, rec{key: k, value: strings.Repeat("v", 100-i%2)})
	}
	w.write(files, sequencefiles.WriterOptions{})
	var mu sync.Mutex
	read := map[string]int{}
	src := meddler{w.src, func(name string, f io.ReadCloser) io.ReadCloser {
		return body{ReadCloser: f, read: func(p []byte) (int, error) {
			n, err := f.Read(p)
			mu.Lock()
			defer mu.Unlock()
			read[name] += n
			return n, err
		}}
	}}
	plan := check(newLoader(src, nil, nil, Options{Partitioner: "string"}).Plan(t.Context(), "db", "1"))(t)
	for name, n := range read {
		if name == "part-r-00020" && n > 256<<10 || name != "part-r-00020" && n > 4 {
			t.Errorf("%d bytes of %s were read", n, name)
		}
	}
	if size := plan.Files[20].Size; size < 1<<20 || read["part-r-00020"] < 100 {
		t.Errorf("%d bytes of %d were read: the test tests nothing", read["part-r-00020"], size)
	}
}

// An error of the source while a record is searched for is not taken for an empty file.
func TestSourceFailsInSearch(t *testing.T) {
	w := newWorld(t)
	w.put("part-r-00000", sequenceFile(t, nil, sequencefiles.WriterOptions{}))
	src := meddler{w.src, func(_ string, f io.ReadCloser) io.ReadCloser {
		first := true
		return body{ReadCloser: f, read: func(p []byte) (int, error) {
			if first && len(p) == magicSize { // the format is looked for
				first = false
				return f.Read(p)
			}
			return 0, errNetwork
		}}
	}}
	if _, err := newLoader(src, nil, nil, Options{}).Plan(t.Context(), "db", "1"); !errors.Is(err, errNetwork) || errors.Is(err, ErrNoRecords) {
		t.Error(err)
	}
}
