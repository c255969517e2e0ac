package loadproc

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/load"
	"sequins/observe/status"
)

// What is told of a load, in the status and in the log.
func TestProgress(t *testing.T) {
	start := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	half := load.Snapshot{Files: 4, FilesDone: 1, Bytes: 1000, BytesDone: 250, Records: 50, Partitions: 4, PartitionsDone: 1, Started: start}
	done := half
	done.FilesDone, done.BytesDone, done.Records, done.PartitionsDone = 4, 1000, 200, 4
	some := done
	some.Empty = 2
	began := load.Snapshot{Files: 4, Bytes: 1000, Partitions: 4, Started: start}
	tests := map[string]struct {
		at   load.Snapshot
		want *status.Progress
		log  string
	}{
		"not begun": {load.Snapshot{}, nil, ""},
		"nothing read": {began, &status.Progress{Files: 4, Bytes: 1000, Partitions: 4, StartedAt: start},
			"[files 0/4 bytes 0/1000 partitions 0/4 records 0 took 10s]"},
		"a quarter": {half, &status.Progress{Files: 4, FilesDone: 1, Bytes: 1000, BytesDone: 250, Records: 50, RecordsPerSecond: 5,
			BytesPerSecond: 25, Partitions: 4, PartitionsDone: 1, StartedAt: start, ETA: start.Add(40 * time.Second)},
			"[files 1/4 bytes 250/1000 partitions 1/4 records 50 took 10s records_per_second 5 bytes_per_second 25 left 30s]"},
		"two of 0 bytes": {some, Progress(done, start.Add(10*time.Second)),
			"[files 4/4 bytes 1000/1000 partitions 4/4 records 200 took 10s empty_files 2 records_per_second 20 bytes_per_second 100]"},
		"all": {done, &status.Progress{Files: 4, FilesDone: 4, Bytes: 1000, BytesDone: 1000, Records: 200, RecordsPerSecond: 20,
			BytesPerSecond: 100, Partitions: 4, PartitionsDone: 4, StartedAt: start},
			"[files 4/4 bytes 1000/1000 partitions 4/4 records 200 took 10s records_per_second 20 bytes_per_second 100]"},
	}
	for name, tt := range tests {
		now := start.Add(10 * time.Second)
		if diff := cmp.Diff(tt.want, Progress(tt.at, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := fmt.Sprint(Figures(tt.at, now)); tt.log != "" && got != tt.log {
			t.Errorf("%s: %s, want %s", name, got, tt.log)
		}
	}
}
