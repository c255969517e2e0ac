package version

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sequins/blocks"
	"sequins/shard"
)

// A Block answers for one partition of a version: a blocks.Reader.
type Block interface {
	Get(key []byte, s *blocks.Scratch) (blocks.Value, bool, error)
	Close() error
}

// Info is what is known of a version before anything of it is here.
type Info struct {
	DB, Name    string
	Partitions  int // 0 is an empty version
	Partitioner shard.Partitioner
	// LastModified is the newest modification time of its files in the source.
	LastModified time.Time
	// Plan is what its blocks are loaded by (blocks.Manifest.PlanHash); "" if
	// that is not known.
	Plan    string
	Cluster Cluster
}

// A Version is one version that can be read, as far as it is here. Put,
// Drop, SetDamaged, Retire and Close are for the goroutine that owns the database;
// readers use Handles.
type Version struct {
	info    Info
	blocks  []atomic.Pointer[slot]
	reports chan<- Corruption

	// refs counts the handles. shut and then drained are added to it on the
	// way out, so that one atomic addition tells a reader whether it came too
	// late, and the last one to let go that it was the last.
	refs     atomic.Int64
	shutOnce sync.Once
	drained  chan struct{}

	retired   atomic.Bool
	retiredAt time.Time    // set before retired
	used      atomic.Int64 // last use by name, in ns after retiredAt

	replaced []Block // taken out of their slots, and maybe being read from
}

const (
	shut    = -1 << 62    // no new handles
	drained = shut + shut // and no old ones
)

// A slot holds the block of one partition.
type slot struct {
	Block
	reported atomic.Bool // somebody has found it to be corrupt
	damaged  atomic.Bool // it has been set aside, and serves until it is replaced
}

// New returns a version of which nothing is here yet.
func New(info Info) *Version {
	return &Version{
		info:    info,
		blocks:  make([]atomic.Pointer[slot], info.Partitions),
		drained: make(chan struct{}),
	}
}

// Info returns what New was given.
func (v *Version) Info() Info { return v.info }

// Put makes a partition readable, or replaces its block. The version owns b
// from now on, unless there is an error. What is replaced is closed together
// with the version, since it may be being read from.
func (v *Version) Put(partition int, b Block) error {
	if partition < 0 || partition >= len(v.blocks) {
		return fmt.Errorf("version %s of %s has no partition %d", v.info.Name, v.info.DB, partition)
	}
	if old := v.blocks[partition].Swap(&slot{Block: b}); old != nil {
		v.replaced = append(v.replaced, old.Block)
	}
	return nil
}

// Drop makes a partition unreadable here: other nodes have it. Its block is closed together with the
// version, since it may be being read from.
func (v *Version) Drop(partition int) {
	if partition < 0 || partition >= len(v.blocks) {
		return
	}
	if old := v.blocks[partition].Swap(nil); old != nil {
		v.replaced = append(v.replaced, old.Block)
	}
}

// SetDamaged says that the block of a partition does not count any more. It
// is read from until Put replaces it, since most of its pages will be fine.
func (v *Version) SetDamaged(partition int) {
	if partition < 0 || partition >= len(v.blocks) {
		return
	}
	if s := v.blocks[partition].Load(); s != nil {
		s.damaged.Store(true)
	}
}

// Held says of each partition whether its block is here and not known to be
// damaged.
func (v *Version) Held() []bool {
	held := make([]bool, len(v.blocks))
	for p := range v.blocks {
		s := v.blocks[p].Load()
		held[p] = s != nil && !s.damaged.Load()
	}
	return held
}

// Idle returns how long nobody has asked for a retired version by its name; 0
// if it is not retired.
func (v *Version) Idle() time.Duration {
	if !v.retired.Load() {
		return 0
	}
	return time.Since(v.retiredAt) - time.Duration(v.used.Load())
}

func (v *Version) retire() {
	if !v.retired.Load() {
		v.retiredAt = time.Now()
		v.retired.Store(true)
	}
}

// acquire counts a reference, unless the version has been shut.
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

// shut lets nobody in any more.
func (v *Version) shut() {
	v.shutOnce.Do(func() {
		if v.refs.Add(shut) == shut {
			v.drain()
		}
	})
}

// drain is called when there are no references left. Those who came too late
// may make that happen again.
func (v *Version) drain() {
	if v.refs.CompareAndSwap(shut, drained) {
		close(v.drained)
	}
}

// Close lets nobody in any more, waits until the last handle has been released,
// and closes the blocks. If ctx ends first, nothing is closed, and it may be
// called again. It is for a version that is not in a set, or not any more.
func (v *Version) Close(ctx context.Context) error {
	v.shut()
	select {
	case <-v.drained:
	case <-ctx.Done():
		return fmt.Errorf("version %s of %s is still being read: %w", v.info.Name, v.info.DB, ctx.Err())
	}
	var errs []error
	for p := range v.blocks {
		if s := v.blocks[p].Swap(nil); s != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, b := range v.replaced {
		errs = append(errs, b.Close())
	}
	v.replaced = nil
	return errors.Join(errs...)
}

// report passes on that a block is damaged, once, unless it has been dropped or replaced meanwhile. If nobody has time for it
// now, the next one to find it tries again.
func (v *Version) report(s *slot, partition int, err error) {
	if !blocks.IsDamage(err) || v.blocks[partition].Load() != s || !s.reported.CompareAndSwap(false, true) {
		return
	}
	select {
	case v.reports <- Corruption{Version: v.info.Name, Partition: partition, Err: err, version: v, slot: s}:
	default:
		s.reported.Store(false)
	}
}
