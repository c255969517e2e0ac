package load

import (
	"fmt"
	"path"
	"testing"

	"sequins/shard"
	"sequins/test/sequencefiles"
)

// The files of a partitioned table are read like those of a flat directory: in the order of their full names, whichever
// numbers they have, also where one directory has the partitions of a partitioner.
func TestPartitionedTable(t *testing.T) {
	for name, tt := range map[string]struct {
		rename  func(i int, name string) string
		aligned bool
	}{
		"one directory":     {func(_ int, name string) string { return "day=1/" + name }, true},
		"equal numbers":     {func(i int, _ string) string { return fmt.Sprintf("part3=%d/city=%%2F/part-00000", i) }, false},
		"MapFiles":          {func(_ int, name string) string { return "day=1/" + name + "/data" }, true},
		"beside files":      {func(i int, name string) string { return []string{"", "day=1/", "day=2/"}[i%3] + name }, true},
		"logs":              {func(i int, _ string) string { return fmt.Sprintf("part9=2026/part-%05d.spl", i) }, true},
		"logs of all names": {func(i int, _ string) string { return fmt.Sprintf("day=2026-01-31/%d.spl", i) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			const n = 4
			files := cut(shard.Hadoop, n, keys(400)...)
			for i := range files {
				files[i].name = tt.rename(i, files[i].name)
			}
			w.write(files, sequencefiles.WriterOptions{})
			w.put("day=1/_metadata", []byte("no data"))
			w.put("day=1/."+path.Base(files[0].name)+".crc.x", []byte("no data"))
			plan := w.load(Options{Partitioner: "auto"})
			if plan.Aligned != tt.aligned || plan.Partitions != n {
				t.Errorf("plan %+v", plan)
			}
			w.compare(plan, model(files, plan.Partitioner, n), all(plan))
		})
	}
}
