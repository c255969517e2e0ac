package loadproc

import (
	"fmt"
	"time"

	"sequins/internal/human"
	"sequins/load"
	"sequins/observe/status"
)

// Progress converts the progress of a load; nil before its first record.
func Progress(s load.Snapshot, now time.Time) *status.Progress {
	if s.Started.IsZero() {
		return nil
	}
	p := &status.Progress{
		Files: int(s.Files), FilesDone: int(s.FilesDone), Bytes: s.Bytes, BytesDone: s.BytesDone, Records: s.Records,
		Partitions: int(s.Partitions), PartitionsDone: int(s.PartitionsDone), StartedAt: seconds(s.Started),
	}
	took := now.Sub(s.Started)
	if took > 0 {
		p.RecordsPerSecond = float64(s.Records) / took.Seconds()
		p.BytesPerSecond = float64(s.BytesDone) / took.Seconds()
	}
	if 0 < s.BytesDone && s.BytesDone < s.Bytes {
		left := float64(s.Bytes-s.BytesDone) / float64(s.BytesDone)
		p.ETA = seconds(now.Add(time.Duration(left * float64(took))))
	}
	return p
}

// Summary describes a load that has ended, for people: 2,000,000 records of 78.0 MiB in 2 min 42 s.
func Summary(s load.Snapshot, now time.Time) string {
	text := fmt.Sprintf("%s records of %s in %s", human.Count(s.Records), human.Size(s.BytesDone), human.Took(now.Sub(s.Started)))
	if s.Reused > 0 {
		text += fmt.Sprintf(", %d of %s not changed", s.Reused, human.Plural(int(s.Partitions), "partition"))
	}
	if s.LeftOut > 0 {
		text += fmt.Sprintf(", %s left out", human.Count(s.LeftOut))
	}
	return text
}

// Figures returns log attributes of the progress of a load: amounts, rate and estimated remaining time.
func Figures(s load.Snapshot, now time.Time) []any {
	all := []any{
		"files", fmt.Sprintf("%d/%d", s.FilesDone, s.Files), "bytes", fmt.Sprintf("%d/%d", s.BytesDone, s.Bytes),
		"partitions", fmt.Sprintf("%d/%d", s.PartitionsDone, s.Partitions), "records", s.Records,
		"took", now.Sub(s.Started).Round(time.Millisecond),
	}
	if s.Reused > 0 {
		all = append(all, "unchanged", fmt.Sprintf("%d/%d", s.Reused, s.Partitions), "unchanged_bytes", s.ReusedBytes)
	}
	if s.Empty > 0 {
		all = append(all, "empty_files", s.Empty)
	}
	if s.LeftOut > 0 {
		all = append(all, "left_out", s.LeftOut)
	}
	p := Progress(s, now)
	if p == nil || p.RecordsPerSecond == 0 {
		return all
	}
	all = append(all, "records_per_second", int64(p.RecordsPerSecond), "bytes_per_second", int64(p.BytesPerSecond))
	if !p.ETA.IsZero() {
		all = append(all, "left", max(0, p.ETA.Sub(now)).Round(time.Second))
	}
	return all
}

// seconds rounds a time to seconds, for the status JSON.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
