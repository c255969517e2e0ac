package load

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"sequins/shard"
	"sequins/test/sequencefiles"
)

// numbers returns keys that are numbers, some of them negative.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, strconv.Itoa(i*7919-n*2000))
	}
	return all
}

// without returns files without some of them, which must be empty of records that count.
func without(files []data, left ...int) (rest []data) {
	for i, f := range files {
		if !slices.Contains(left, i) {
			rest = append(rest, f)
		}
	}
	return rest
}

// avoid returns the keys that are in none of the partitions.
func avoid(by shard.Partitioner, n int, keys []string, empty ...int) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(empty, by.Partition([]byte(k), n)) })
}

// named renames files by their index.
func named(files []data, format string) []data {
	for i := range files {
		files[i].name = fmt.Sprintf(format, i)
	}
	return files
}

// split splits each file in two, named by a format of its index and half.
func split(files []data, format string) (halves []data) {
	for i, f := range files {
		half := len(f.records) / 2
		halves = append(halves, data{name: fmt.Sprintf(format, i, 0), records: f.records[:half]}, data{name: fmt.Sprintf(format, i, 1), records: f.records[half:]})
	}
	return halves
}

// TestLayouts plans and loads versions whose files are not exactly one for each partition, and versions with names of other
// programs. All values are compared with a model.
func TestLayouts(t *testing.T) {
	const uuid = "0b8f5f3e-7d0e-4d6e-9c5e-1f3f6d7f1a2b"
	gaps := func(by shard.Partitioner, n int, keys []string, empty ...int) []data {
		return without(cut(by, n, avoid(by, n, keys, empty...)...), empty...)
	}
	tests := []struct {
		name       string
		files      []data
		opts       Options
		by         shard.Partitioner
		partitions int
		aligned    bool
	}{
		{"one partition is empty", gaps(shard.Murmur3, 8, keys(500), 3), Options{}, shard.Murmur3, 8, true},
		{"the last ones are", gaps(shard.Murmur3, 8, keys(500), 6, 7), Options{}, shard.Murmur3, 8, true},
		{"the first one is", gaps(shard.Murmur3, 8, keys(500), 0), Options{}, shard.Murmur3, 8, true},
		{"most are", slices.DeleteFunc(cut(shard.Murmur3, 200, keys(25)...), func(f data) bool { return len(f.records) == 0 }), Options{}, shard.Murmur3, 200, true},
		{"of Hadoop", gaps(shard.Hadoop, 7, keys(500), 1, 4), Options{}, shard.Hadoop, 7, true},
		{"numbers of 32 bits", gaps(shard.Murmur3Int, 9, numbers(500), 2), Options{}, shard.Murmur3Int, 9, true},
		{"numbers of 64 bits", gaps(shard.Murmur3Long, 9, numbers(500), 2), Options{}, shard.Murmur3Long, 9, true},
		{"set by name", gaps(shard.Murmur3, 8, keys(500), 7), Options{Partitioner: "murmur3"}, shard.Murmur3, 8, true},
		{"set by number", gaps(shard.Murmur3, 8, keys(500), 7), Options{Partitions: 8}, shard.Murmur3, 8, true},
		{"set by both", gaps(shard.Murmur3, 8, keys(500), 7), Options{Partitions: 8, Partitioner: "murmur3"}, shard.Murmur3, 8, true},
		{"set to another number", gaps(shard.Murmur3, 8, keys(500), 7), Options{Partitions: 9}, shard.String, 9, false},
		{"set to fewer than there are", cut(shard.Murmur3, 8, keys(500)...), Options{Partitions: 3}, shard.String, 3, false},
		{"one file into many partitions", cut(shard.String, 1, keys(500)...), Options{Partitions: 5}, shard.String, 5, false},
		{"many files into one partition", cut(shard.Hadoop, 5, keys(500)...), Options{Partitions: 1}, shard.String, 1, true},
		{"several files of each partition", split(cut(shard.Murmur3, 4, keys(500)...), "part-%05d-"+uuid+".c%03d.snappy.parquet"), Options{}, shard.Murmur3, 4, true},
		{"directories", split(cut(shard.Murmur3, 4, keys(500)...), "part-r-%05d-x%d"), Options{}, shard.Murmur3, 4, true},
		{"buckets of Spark", named(cut(shard.Murmur3, 6, keys(500)...), "part-00000-"+uuid+"_%05d.c000"), Options{}, shard.Murmur3, 6, true},
		{"buckets of Hive", named(cut(shard.HiveMurmur3, 6, keys(500)...), "%06d_0"), Options{}, shard.HiveMurmur3, 6, true},
		{"old buckets of Hive", named(cut(shard.Hive, 6, keys(500)...), "%06d_0"), Options{}, shard.Hive, 6, true},
		{"old buckets of Hive, numbers", named(cut(shard.HiveLong, 6, numbers(500)...), "%06d_0"), Options{}, shard.HiveLong, 6, true},
		{"buckets of Hive, inserted twice", split(cut(shard.HiveMurmur3, 6, keys(500)...), "%06d_0_copy_%d"), Options{}, shard.HiveMurmur3, 6, true},
		{"partitions of Kafka", split(cut(shard.Kafka, 5, keys(500)...), "topic+%d+%010d+0000009999.avro"), Options{}, shard.Kafka, 5, true},
		{"of Kafka, but not so named", cut(shard.Kafka, 5, keys(500)...), Options{}, shard.String, 5, false},
		{"of Kafka, set by name", cut(shard.Kafka, 5, keys(500)...), Options{Partitioner: "kafka"}, shard.Kafka, 5, true},
		{"gaps, and cut by nothing", named(cut(shard.Murmur3, 8, keys(500)...), "part-1%04d"), Options{}, shard.String, 8, false},
		{"all of one number", split(cut(shard.Murmur3, 1, keys(500)...), "part-00000-x%[2]d"), Options{}, shard.String, 2, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(tt.files, sequencefiles.WriterOptions{})
			plan := w.load(tt.opts)
			if plan.Partitioner != tt.by || plan.Aligned != tt.aligned || plan.Partitions != tt.partitions {
				t.Fatalf("by %v into %d, aligned %v; want %v, %d, %v", plan.Partitioner, plan.Partitions, plan.Aligned, tt.by, tt.partitions, tt.aligned)
			}
			w.compare(plan, model(tt.files, tt.by, tt.partitions), all(plan))
			again := check(w.plan(tt.opts.PlannedBy(plan.Manifest())))(t)
			if got, want := again.Manifest().Content(), plan.Manifest().Content(); got != want {
				t.Errorf("planned again it has %d partitions by %v, aligned %v", again.Partitions, again.Partitioner, again.Aligned)
			}
		})
	}
}
