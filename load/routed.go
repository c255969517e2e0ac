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
// each lane reads its files one after another into one sorter per shard. Then the sorters sort. Finally each shard merges its
// sorters of all lanes, and builds its partitions one after another.
func (j *job) loadRouted(ctx context.Context, todo []int) error {
	files := make([]int, len(j.plan.Files))
	for i := range files {
		files[i] = i
	}
	j.expect(files)
	r := routed{job: j, todo: todo, memory: j.opts.Memory}
	lanes, shards := r.shape()
	r.lanes, r.piped = j.plan.split(lanes), lanes < j.opts.workers()
	r.assignPlaces(shards)
	return r.load(ctx)
}

// routed is one load of files through sorters.
type routed struct {
	*job
	todo    []int               // the partitions, by slot
	memory  int64               // for sorting
	piped   bool                // reading gets its own goroutine, because there are spare cores
	places  []place             // of each slot
	slots   []slot              // of each partition of the version; nil if all records are of the only partition
	lanes   [][]int             // the files of each lane
	shards  [][]int             // the partitions of each shard, by rank
	sorters [][]*extsort.Sorter // by lane and shard
}

// load reads the files, sorts their records and builds the partitions.
func (r *routed) load(ctx context.Context) error {
	memory := r.memory / int64(len(r.lanes)*len(r.shards))
	for range r.lanes {
		var lane []*extsort.Sorter
		for range r.shards {
			lane = append(lane, extsort.New(extsort.Options{Memory: memory, Dir: r.target.Staging.Temp(), FS: r.target.Staging.FS}))
		}
		r.sorters = append(r.sorters, lane)
	}
	defer r.close()
	if err := parallel.Run(ctx, len(r.lanes), len(r.lanes), r.read); err != nil {
		return err
	}
	err := parallel.Run(ctx, r.opts.workers(), len(r.lanes)*len(r.shards), func(ctx context.Context, i int) error {
		return r.sorters[i%len(r.lanes)][i/len(r.lanes)].Finish(ctx)
	})
	if err != nil {
		return err
	}
	return parallel.Run(ctx, len(r.shards), len(r.shards), r.merge)
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
	for most := max(1, int(r.memory/minSorter)); lanes*shards > most; {
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

// close removes the files of the sorters. Errors are ignored: the store removes leftover files at its
// next start.
func (r *routed) close() {
	for _, lane := range r.sorters {
		for _, s := range lane {
			_ = s.Close()
		}
	}
}

// read reads the files of one lane. Records are sorted by the rank of their partition in its shard, and
// then by key.
func (r *routed) read(ctx context.Context, lane int) error {
	s := &scanner{job: r.job, slots: r.slots, only: r.todo[0]}
	var ranked []byte
	return s.run(ctx, r.lanes[lane], r.piped, func(to slot, key, value []byte, deleted bool) error {
		at := r.places[to]
		ranked = append(binary.BigEndian.AppendUint16(ranked[:0], at.rank), key...)
		return r.sorters[lane][at.shard].Add(ranked, value, deleted)
	})
}

func (r *routed) merge(ctx context.Context, shard int) error {
	out := &ranks{job: r.job, partitions: r.shards[shard]}
	defer out.discard()
	var sorters []*extsort.Sorter
	for _, lane := range r.sorters {
		sorters = append(sorters, lane[shard])
	}
	if err := extsort.Merge(ctx, sorters, out.add); err != nil {
		return err
	}
	return out.finish()
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
