package load

import (
	"context"
	"encoding/binary"

	"sequins/blocks"
	"sequins/internal/parallel"
	"sequins/load/extsort"
	"sequins/source"
)

// rankSize is the length of the rank that precedes a key in a sorter. A sorter must accept the longest
// key with it.
const rankSize = 2

var (
	_ [extsort.MaxKey - blocks.MaxKey - rankSize]struct{}
	_ [extsort.MaxValue - blocks.MaxValue]struct{}
)

// minSorter is the minimum memory of a sorter, in bytes, if there are several.
const minSorter = 16 << 20

// loadRouted builds partitions from files that can each hold keys of all partitions.
//
// The files are split into lanes, in the order of their names, and the partitions into shards. First,
// each lane reads its files one after another into one sorter per shard. Then each shard merges its
// sorters of all lanes, and builds its partitions one after another.
func (j *job) loadRouted(ctx context.Context, todo []int) error {
	files := make([]int, len(j.plan.Files))
	for i := range files {
		files[i] = i
	}
	j.expect(files)
	r := routed{job: j, todo: todo}
	lanes, shards := r.shape()
	r.lanes = j.plan.split(lanes)
	r.assignPlaces(shards)
	r.openSorters()
	defer r.close()
	if err := parallel.Run(ctx, len(r.lanes), len(r.lanes), r.sort); err != nil {
		return err
	}
	return parallel.Run(ctx, shards, shards, r.merge)
}

// routed is one load of files that are not aligned.
type routed struct {
	*job
	todo    []int               // the partitions, by slot
	places  []place             // of each slot
	slots   []slot              // of each partition of the version
	lanes   [][]int             // the files of each lane
	shards  [][]int             // the partitions of each shard, by rank
	sorters [][]*extsort.Sorter // by lane and shard
}

// A place locates a slot: its shard, and its position in the shard.
type place struct {
	shard int
	rank  uint16 // less than shard.MaxPartitions
}

// shape returns the number of lanes and shards: the number of workers, unless the sorters would then
// have less than minSorter memory each.
func (r *routed) shape() (lanes, shards int) {
	lanes, shards = min(r.opts.workers(), len(r.plan.Files)), min(r.opts.workers(), len(r.todo))
	if r.plan.Format == FormatSparkey {
		// A sorter drops deleted records, so a delete must be in the same sorter as the record that it
		// deletes.
		lanes = 1
	}
	for most := max(1, int(r.opts.Memory/minSorter)); lanes*shards > most; {
		if lanes >= shards {
			lanes--
		} else {
			shards--
		}
	}
	return lanes, shards
}

// split cuts the files into n non-empty runs of about the same size in bytes.
func (p *Plan) split(n int) [][]int {
	var left int64
	for _, f := range p.Files {
		left += weight(f)
	}
	lanes := make([][]int, 0, n)
	for i := 0; i < len(p.Files); n-- {
		var lane []int
		var size int64
		for share := left / int64(n); i < len(p.Files)-(n-1) && (len(lane) == 0 || size+weight(p.Files[i])/2 <= share); i++ {
			lane = append(lane, i)
			size += weight(p.Files[i])
		}
		left -= size
		lanes = append(lanes, lane)
	}
	return lanes
}

// weight returns the size of a file, of which the source may say anything, so that the sum of all fits into an int64.
func weight(f source.File) int64 {
	const most = 1 << 42
	return max(0, min(f.Size, most))
}

// assignPlaces assigns each partition a place.
func (r *routed) assignPlaces(shards int) {
	r.shards = make([][]int, shards)
	r.places = make([]place, len(r.todo))
	r.slots = make([]slot, r.plan.Partitions)
	for i := range r.slots {
		r.slots[i] = unwanted
	}
	for i, p := range r.todo {
		s := i % shards
		r.slots[p] = slot(i)
		r.places[i] = place{shard: s, rank: uint16(len(r.shards[s]))}
		r.shards[s] = append(r.shards[s], p)
	}
}

func (r *routed) openSorters() {
	memory := r.opts.Memory / int64(len(r.lanes)*len(r.shards))
	for range r.lanes {
		var lane []*extsort.Sorter
		for range r.shards {
			lane = append(lane, extsort.New(extsort.Options{Memory: memory, Dir: r.target.Staging.Temp()}))
		}
		r.sorters = append(r.sorters, lane)
	}
}

// close removes the files of the sorters. Errors are ignored: the store removes leftover files at its
// next start.
func (r *routed) close() {
	for _, lane := range r.sorters {
		for _, s := range lane {
			_ = s.Close()
		}
	}
}

// sort reads the files of one lane. Records are sorted by the rank of their partition in its shard, and
// then by key.
func (r *routed) sort(ctx context.Context, lane int) error {
	s := &scanner{job: r.job, slots: r.slots}
	piped := len(r.lanes) < r.opts.workers()
	var ranked []byte
	return s.run(ctx, r.lanes[lane], piped, func(to slot, key, value []byte, deleted bool) error {
		at := r.places[to]
		ranked = append(binary.BigEndian.AppendUint16(ranked[:0], at.rank), key...)
		return r.sorters[lane][at.shard].Add(ranked, value, deleted)
	})
}

// merge builds the partitions of one shard.
func (r *routed) merge(ctx context.Context, shard int) (err error) {
	out := &ranks{job: r.job, partitions: r.shards[shard]}
	defer out.discard()
	if len(r.lanes) == 1 {
		err = r.sorters[0][shard].Merge(ctx, out.add)
	} else {
		err = r.mergeLanes(ctx, shard, out.add)
	}
	if err != nil {
		return err
	}
	return out.finish()
}

// mergeLanes merges the sorters of all lanes for a shard. Each sorter runs on its own goroutine.
func (r *routed) mergeLanes(ctx context.Context, shard int, add func(key, value []byte) error) error {
	lanes := make([]func(context.Context, sink) error, len(r.lanes))
	for i := range lanes {
		lanes[i] = func(ctx context.Context, to sink) error {
			return r.sorters[i][shard].Merge(ctx, func(key, value []byte) error {
				return to(0, key, value, false)
			})
		}
	}
	return mergeStreams(ctx, lanes, add)
}

// ranks splits records, sorted by rank and key, into the blocks of their partitions. A partition
// without records gets an empty block.
type ranks struct {
	*job
	partitions []int // by rank
	b          *builder
	done       int // number of published partitions
}

func (r *ranks) add(ranked, value []byte) error {
	rank := int(binary.BigEndian.Uint16(ranked))
	if r.b == nil || rank != r.done {
		if err := r.advance(rank); err != nil {
			return err
		}
	}
	return r.b.add(ranked[rankSize:], value)
}

// advance publishes all partitions before rank and begins the block of rank.
func (r *ranks) advance(rank int) (err error) {
	for {
		if r.b == nil {
			if r.b, err = r.newBuilder(r.partitions[r.done]); err != nil {
				return err
			}
		}
		if r.done == rank {
			return nil
		}
		if err := r.publish(); err != nil {
			return err
		}
	}
}

func (r *ranks) publish() error {
	if err := r.b.publish(); err != nil {
		return err
	}
	r.b = nil
	r.done++
	return nil
}

// finish publishes the remaining partitions.
func (r *ranks) finish() error {
	if err := r.advance(len(r.partitions) - 1); err != nil {
		return err
	}
	return r.publish()
}

func (r *ranks) discard() {
	if r.b != nil {
		r.b.discard()
	}
}
