package load

import (
	"sync"
	"time"
)

// Progress is the progress of a load. The zero value is ready to use. LoadInto updates it, and any
// goroutine may call Snapshot.
type Progress struct {
	mu  sync.Mutex
	now Snapshot
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

	// Since the Progress was made, by plans and loads, also of files that are read again:
	Fetched  int64         // bytes that were read from the source
	Scanned  int64         // records that were read
	Read     int64         // files that were read by loads
	ReadTime time.Duration // that these took together
}

// Snapshot returns the current numbers. They can decrease: a file that is read again because it is not
// sorted counts as unread.
func (p *Progress) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *Progress) update(change func(now *Snapshot)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.now)
}

// begin resets p for a load. What Reuse has counted stays, and what is counted since p was made.
func (p *Progress) begin(partitions, done int) {
	p.update(func(now *Snapshot) {
		*now = Snapshot{Partitions: int64(partitions), PartitionsDone: int64(done), Reused: now.Reused, ReusedBytes: now.ReusedBytes, Started: time.Now(),
			Fetched: now.Fetched, Scanned: now.Scanned, Read: now.Read, ReadTime: now.ReadTime}
	})
}

// Reuse counts partitions, before LoadInto is called for the others of those that are wanted, of which some are there already.
func (p *Progress) Reuse(wanted, have, reused int, bytes int64) {
	p.begin(wanted, have+reused)
	p.update(func(now *Snapshot) { now.Reused, now.ReusedBytes = int64(reused), bytes })
}

// tally counts what one scan has read. It belongs to the scanning goroutine, which adds it to the
// Progress periodically.
type tally struct {
	files, bytes, records int64
	fetched               int64 // bytes read from the source
}

func (p *Progress) add(t tally) {
	p.update(func(now *Snapshot) {
		now.FilesDone += t.files
		now.BytesDone += t.bytes
		now.Records += t.records
	})
}

// fetched counts what was read from the source.
func (p *Progress) fetched(bytes, records int64) {
	p.update(func(now *Snapshot) {
		now.Fetched += bytes
		now.Scanned += records
	})
}

// read counts a file that a load has read, or failed to, since start.
func (p *Progress) read(start time.Time) {
	p.update(func(now *Snapshot) {
		now.Read++
		now.ReadTime += time.Since(start)
	})
}
