package load

import (
	"sync/atomic"
	"time"
)

// Progress is the progress of a load. The zero value is ready to use. LoadInto updates it, and any
// goroutine may call Snapshot.
type Progress struct {
	files, filesDone, empty    atomic.Int64
	bytes, bytesDone           atomic.Int64
	records, leftOut           atomic.Int64
	partitions, partitionsDone atomic.Int64
	reused, reusedBytes        atomic.Int64
	started                    atomic.Int64 // Unix time in nanoseconds; 0 before the start
}

// Snapshot is the state of a Progress at one moment.
type Snapshot struct {
	Files, FilesDone           int64 // that this node reads
	Empty                      int64 // of these files: those of 0 bytes
	Bytes, BytesDone           int64 // of these files, in the source
	Records                    int64 // read, wanted or not
	LeftOut                    int64 // records; see Options.MaxRecordErrors
	Partitions, PartitionsDone int64 // that this node wants; done: with a block
	Reused, ReusedBytes        int64 // partitions whose blocks were those of other versions, and the sizes of these
	Started                    time.Time
}

// Snapshot returns the current numbers. They can decrease: a file that is read again because it is not
// sorted counts as unread.
func (p *Progress) Snapshot() Snapshot {
	s := Snapshot{
		Files: p.files.Load(), FilesDone: p.filesDone.Load(), Empty: p.empty.Load(),
		Bytes: p.bytes.Load(), BytesDone: p.bytesDone.Load(),
		Records: p.records.Load(), LeftOut: p.leftOut.Load(),
		Partitions: p.partitions.Load(), PartitionsDone: p.partitionsDone.Load(),
		Reused: p.reused.Load(), ReusedBytes: p.reusedBytes.Load(),
	}
	if ns := p.started.Load(); ns != 0 {
		s.Started = time.Unix(0, ns)
	}
	return s
}

// begin resets p for a load.
func (p *Progress) begin(partitions, done int) {
	for _, v := range []*atomic.Int64{&p.files, &p.filesDone, &p.empty, &p.bytes, &p.bytesDone, &p.records, &p.leftOut} {
		v.Store(0)
	}
	p.partitions.Store(int64(partitions))
	p.partitionsDone.Store(int64(done))
	p.started.Store(time.Now().UnixNano())
}

// Reuse counts partitions, before LoadInto is called for the others of those that are wanted, of which some are there already.
func (p *Progress) Reuse(wanted, have, reused int, bytes int64) {
	p.begin(wanted, have+reused)
	p.reused.Store(int64(reused))
	p.reusedBytes.Store(bytes)
}

// tally counts what one scan has read. It belongs to the scanning goroutine, which adds it to the
// Progress periodically.
type tally struct {
	files, bytes, records int64
	fetched               int64 // bytes read from the source
}

func (p *Progress) add(t tally) {
	p.filesDone.Add(t.files)
	p.bytesDone.Add(t.bytes)
	p.records.Add(t.records)
}

// filesLeft returns the number of files to read.
func (p *Progress) filesLeft() int64 { return p.files.Load() - p.filesDone.Load() }

// undo subtracts the counts of a scan that is repeated.
func (p *Progress) undo(t tally) {
	p.add(tally{files: -t.files, bytes: -t.bytes, records: -t.records})
}
