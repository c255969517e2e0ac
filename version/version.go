package version

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
)

// Block is a readable partition of a version: a blocks.Reader.
type Block interface {
	Get(key []byte, s *blocks.Scratch) (blocks.Value, bool, error)
	GetBatch(keys [][]byte, results []blocks.Result, s *blocks.BatchScratch)
	IterWithin(start, end []byte, size int) *blocks.Iterator
	Properties() blocks.Properties
	Size() int64
	Close() error
}

// Info describes a version. It is that of a Version, and of its Handles.
type Info struct {
	DB string
	content.Content
	Partitions  int // 0 for an empty version
	Partitioner shard.Partitioner
	// LastModified is the newest modification time of its files in the source.
	LastModified time.Time
	// Following is what is known of its replicas on other nodes.
	Following Following
}

// Version is one readable version, with the partitions that are on this node. Put, Drop, Renew, SetDamaged, Retire and Revive belong
// to the goroutine that owns the database, and must not be called after Close has been; readers use Handles.
type Version struct {
	Info    // not to be changed
	id      uint64
	code    string // of the content
	blocks  []atomic.Pointer[slot]
	reports chan<- Corruption

	// refs counts the handles. Closing adds shut and then drained to it, so that a single atomic addition tells a
	// reader that the version is closing, and the last release that it is the last.
	refs    atomic.Int64
	drained chan struct{}

	*standing
	replaced []Block         // removed from their slots, but perhaps being read
	renewed  bool            // the blocks in the slots are those of another version, see Renew
	before   <-chan struct{} // closed with the version that this one has been renewed from; nil if there is none
	closed   chan struct{}
}

// A standing is how a version stands in its set: also what it is renewed to, see Renew.
type standing struct {
	made    time.Time
	retired atomic.Int64 // its age when it was retired, or last used by name since then; 0: it is not retired

	withheld   atomic.Bool // see Withhold
	wasCurrent atomic.Bool // it is or was the current version of its set
}

const (
	shut    = -1 << 62    // no new handles
	drained = shut + shut // and no old ones
)

// slot holds the block of one partition.
type slot struct {
	Block
	reported atomic.Bool // a reader has reported it as corrupt
	damaged  atomic.Bool // set aside, and read until it is replaced
}

// Corruption reports a block that was found damaged while it was read.
type Corruption struct {
	Input     content.Input
	Partition int
	Err       error

	slot *slot
}

// lastID is the Handle.ID of the version that New has returned last.
var lastID atomic.Uint64

// New returns a version without blocks.
func New(info Info) *Version {
	return &Version{
		Info:     info,
		id:       lastID.Add(1),
		code:     info.Code(),
		blocks:   make([]atomic.Pointer[slot], info.Partitions),
		drained:  make(chan struct{}),
		standing: &standing{made: time.Now()},
		closed:   make(chan struct{}),
	}
}

// Put makes a partition readable, or replaces its block. The version takes ownership of b, unless Put returns an error.
// A replaced block may still be read from: see Renew.
func (v *Version) Put(partition int, b Block) error {
	if partition < 0 || partition >= len(v.blocks) {
		return fmt.Errorf("version %s of %s has no partition %d", v.Name, v.DB, partition)
	}
	if old := v.blocks[partition].Swap(&slot{Block: b}); old != nil {
		v.replaced = append(v.replaced, old.Block)
	}
	return nil
}

// Drop makes a partition unreadable here. Its block may still be read from: see Renew.
func (v *Version) Drop(partition int) {
	if old := v.blocks[partition].Swap(nil); old != nil {
		v.replaced = append(v.replaced, old.Block)
	}
}

// Renew returns a version with the same blocks, to be prepared in the place of v, if Put or Drop have removed others, and nil if not. v keeps what was removed:
// when it is closed, after its own readers, the disk has that room, however many read the new version.
func (v *Version) Renew() *Version {
	if len(v.replaced) == 0 {
		return nil
	}
	next := New(v.Info)
	next.id, next.standing, next.before, v.renewed = v.id, v.standing, v.closed, true
	for p := range v.blocks {
		next.blocks[p].Store(v.blocks[p].Load())
	}
	return next
}

// SetDamaged excludes the block of a partition from Held. It is read until Put replaces it, since most of its pages are probably intact.
func (v *Version) SetDamaged(partition int) {
	if s := v.slot(partition); s != nil {
		s.damaged.Store(true)
	}
}

// Held reports for each partition whether its block is here and not damaged.
func (v *Version) Held() []bool {
	held := make([]bool, len(v.blocks))
	for p := range v.blocks {
		s := v.blocks[p].Load()
		held[p] = s != nil && !s.damaged.Load()
	}
	return held
}

// Sizes returns the size in bytes of each block that Held reports, by partition, and 0 for the others.
func (v *Version) Sizes() []int64 {
	sizes := make([]int64, len(v.blocks))
	for p := range v.blocks {
		if s := v.blocks[p].Load(); s != nil && !s.damaged.Load() {
			sizes[p] = s.Size()
		}
	}
	return sizes
}

// Withhold sets whether clients cannot read v by its name, because a gate holds it or has not judged it yet. It changes
// nothing for a version that is or was current, nor for other nodes (see Handle.Withheld).
func (v *Version) Withhold(withheld bool) { v.withheld.Store(withheld) }

// Idle returns the time since a retired version was last acquired by name; 0 if it is not retired.
func (v *Version) Idle() time.Duration {
	retired := v.retired.Load()
	if retired == 0 {
		return 0
	}
	return time.Duration(v.age() - retired)
}

// Retire starts the time of Idle. The version can still be acquired by name.
func (v *Version) Retire() { v.retired.CompareAndSwap(0, v.age()) }

// Revive takes Retire back.
func (v *Version) Revive() { v.retired.Store(0) }

// age returns the time since New, in ns, at least 1.
func (v *Version) age() int64 { return max(1, int64(time.Since(v.made))) }

// slot returns the slot of a partition; nil if it is not on this node.
func (v *Version) slot(partition int) *slot {
	if uint(partition) >= uint(len(v.blocks)) {
		return nil
	}
	return v.blocks[partition].Load()
}

// acquire adds a reference, and reports whether it could: not after shut.
func (v *Version) acquire() bool {
	if v.refs.Add(1) > 0 {
		return true
	}
	v.release()
	return false
}

func (v *Version) release() {
	if v.refs.Add(-1) == shut {
		v.drain()
	}
}

// shut prevents new handles. Only Close calls it, and may do so again.
func (v *Version) shut() {
	if v.refs.Load() >= 0 && v.refs.Add(shut) == shut {
		v.drain()
	}
}

// drain is called when there are no references left. Late calls of acquire may cause it to be called again.
func (v *Version) drain() {
	if v.refs.CompareAndSwap(shut, drained) {
		close(v.drained)
	}
}

// Close prevents new handles, waits until the last one is released, and closes the blocks. If ctx ends first, nothing
// is closed, and Close may be called again, but not concurrently. The version must not be in a set, and one that it has been renewed from must be closed, too.
func (v *Version) Close(ctx context.Context) error {
	v.shut()
	for _, end := range []<-chan struct{}{v.drained, v.before} {
		if end == nil {
			continue
		}
		select {
		case <-end:
		case <-ctx.Done():
			return fmt.Errorf("version %s of %s is still being read: %w", v.Name, v.DB, ctx.Err())
		}
	}
	if !v.renewed {
		for p := range v.blocks {
			v.Drop(p)
		}
	}
	var errs []error
	for _, b := range v.replaced {
		errs = append(errs, b.Close())
	}
	close(v.closed)
	return errors.Join(errs...)
}

// report reports a damaged block once, unless it has been dropped or replaced meanwhile. If Corruptions is full, it
// returns false, and the next reader tries again.
func (v *Version) report(s *slot, partition int, err error) bool {
	if !blocks.IsDamage(err) || v.blocks[partition].Load() != s || !s.reported.CompareAndSwap(false, true) {
		return true
	}
	select {
	case v.reports <- Corruption{Input: v.Input, Partition: partition, Err: err, slot: s}:
		return true
	default:
		s.reported.Store(false)
		return false
	}
}
