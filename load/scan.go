package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sequins/blocks"
	"sequins/shard"
	"sequins/source"
)

// The progress is updated after this many records or bytes of records.
const (
	reportEvery = 4096
	reportBytes = 1 << 20
)

// slot is the index of a partition among those that a load builds.
type slot uint32

const unwanted = ^slot(0)

// A scanner reads files one after another and passes the wanted records to a sink.
type scanner struct {
	job *job
	// slots maps each partition to its slot, or to unwanted. It is nil for an aligned file, whose
	// records must all be of partition only.
	slots []slot
	only  int

	total    tally // of this scan
	reported tally // the part of total that was added to the progress
	leftOut  int64
}

// run reads the files with these indices in the plan. If piped is true, reading and the sink run in
// parallel.
func (s *scanner) run(ctx context.Context, files []int, piped bool, to sink) error {
	read := func(ctx context.Context, to sink) error {
		for _, i := range files {
			if err := s.file(ctx, i, to); err != nil {
				return err
			}
		}
		return nil
	}
	if piped {
		return pipe(ctx, read, to)
	}
	return read(ctx, to)
}

func (s *scanner) file(ctx context.Context, i int, to sink) error {
	defer s.job.progress.read(time.Now())
	in, err := s.job.open(ctx, s.job.plan, s.job.plan.Files[i])
	if err != nil {
		return err
	}
	before := s.total
	err = s.records(ctx, in, before, to)
	if cerr := in.Close(); err == nil || errors.Is(cerr, source.ErrChanged) { // then damage is a consequence of the change
		err = cerr
	}
	if err == nil {
		s.total.files++
	}
	s.countBytes(before, in)
	s.leftOut += in.leftOut
	if perr := s.report(ctx); err == nil {
		err = perr
	}
	return err
}

// countBytes updates the byte counts of the total. before is the total before this file.
func (s *scanner) countBytes(before tally, in *Records) {
	s.total.bytes = before.bytes + in.done()
	s.total.fetched = before.fetched + in.fetched()
}

// records reads the records of a file. before is the total before this file.
func (s *scanner) records(ctx context.Context, in *Records, before tally, give sink) error {
	step := int64(min(reportEvery, s.job.pacer.Burst()))
	next, size := s.total.records+step, 0
	by, partitions := s.job.plan.Partitioner, s.job.plan.Partitions
	for in.Scan() {
		key, value := in.Key(), in.Value()
		if isTooLarge(in) {
			return in.intolerable(tooLarge(in))
		}
		to := slot(0)
		p := by.Partition(key, partitions)
		if s.slots != nil {
			to = s.slots[p]
		} else if p != s.only {
			return s.misplaced(in, p)
		}
		if to != unwanted {
			if err := give(to, key, value, in.Deleted()); err != nil {
				return err
			}
		}
		size += len(key) + len(value)
		if s.total.records++; s.total.records == next || size >= reportBytes {
			next, size = s.total.records+step, 0
			s.countBytes(before, in)
			if err := s.report(ctx); err != nil {
				return err
			}
		}
	}
	return in.Err()
}

// report reports what was read since the last report.
func (s *scanner) report(ctx context.Context) error {
	news := tally{
		files:   s.total.files - s.reported.files,
		bytes:   s.total.bytes - s.reported.bytes,
		records: s.total.records - s.reported.records,
		fetched: s.total.fetched - s.reported.fetched,
	}
	s.reported = s.total
	return s.job.report(ctx, news)
}

// report updates the progress, and then waits for the time that the records may take.
func (j *job) report(ctx context.Context, news tally) error {
	j.progress.add(news)
	j.progress.update(func(now *Snapshot) { now.LeftOut = j.tolerance.count() })
	j.progress.fetched(news.fetched, news.records)
	for step := int64(j.pacer.Burst()); news.records > 0; news.records -= step {
		if err := j.pacer.WaitN(ctx, int(min(step, news.records))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func tooLarge(in *Records) error {
	return fmt.Errorf("%s: offset %d: a record with a key of %d and a value of %d bytes, over %d or %d: %w",
		in.path, in.Offset(), len(in.Key()), len(in.Value()), blocks.MaxKey, blocks.MaxValue, blocks.ErrTooLarge)
}

func (s *scanner) misplaced(in *Records, partition int) error {
	key := in.Key()
	e := &PartitionError{
		File: in.path, Offset: in.Offset(), Partitioner: s.job.plan.Partitioner,
		Want: s.only, Got: partition, Auto: s.job.plan.Auto,
	}
	e.Key = append(e.Key, key[:min(len(key), maxShownKey)]...)
	e.Clipped = len(key) > maxShownKey
	return e
}

// maxShownKey is the number of bytes of a key that an error shows.
const maxShownKey = 64

// ErrRefuted is the class of errors of a record that refutes a detected partitioner. The version must
// be planned again without it, see Refutes.
var ErrRefuted = errors.New("the partitioner that was found is not that of the files")

// A PartitionError reports a record that is in the wrong file. It is an ErrRefuted if the partitioner
// was detected from a sample.
type PartitionError struct {
	File        string            `json:"file"`
	Offset      int64             `json:"offset"`      // of the record in File, or of its block
	Key         []byte            `json:"key"`         // its first bytes
	Clipped     bool              `json:"clipped"`     // Key is truncated
	Partitioner shard.Partitioner `json:"partitioner"` // by name
	Want        int               `json:"want"`        // the partition of the file
	Got         int               `json:"got"`         // the partition of the key
	Auto        bool              `json:"auto"`        // the partitioner was detected, not configured
}

// Error names the file, the key and both partitions, and suggests a remedy.
func (e *PartitionError) Error() string {
	more := ""
	if e.Clipped {
		more = "…"
	}
	help := `if its files are not cut by this function, set partitioner = "string" or "auto" for this db`
	if e.Auto {
		help = "the files are not cut by this function, and the version is planned without it"
	}
	return fmt.Sprintf("%s: offset %d: the key %q%s belongs to partition %d by the partitioner %q, but the file is partition %d; %s",
		e.File, e.Offset, e.Key, more, e.Got, e.Partitioner, e.Want, help)
}

// Is reports whether target is ErrRefuted and the partitioner was detected.
func (e *PartitionError) Is(target error) bool { return target == ErrRefuted && e.Auto }

// Refutes returns the partitioner that an error of Load refutes, if it refutes one. The version must
// then be planned again, with this partitioner among the refuted ones. That happens at most once per
// partitioner, because a plan never uses a refuted one, and the last plan, String with every file read,
// cannot be refuted.
func Refutes(err error) (shard.Partitioner, bool) {
	if e, ok := errors.AsType[*PartitionError](err); ok && e.Auto {
		return e.Partitioner, true
	}
	return 0, false
}
