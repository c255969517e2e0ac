package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/background"
	"sequins/internal/render"
	"sequins/metrics"
	"sequins/source"
)

// DefaultMemory bounds the external sorts of a load where Options do not.
const DefaultMemory = 256 << 20

// Fields are the names of the fields of a record that are its key and its
// value, with dots between a record and its field. No value is the whole
// record, as JSON.
type Fields = render.Paths

// Options say how versions are loaded.
type Options struct {
	// Memory bounds what the external sorts of one load hold, in bytes,
	// together. 0 is DefaultMemory. Batches on their way, and the filter of each
	// block being finished, come on top: about 25 MiB a worker.
	Memory int64

	Compression blocks.Compression // of blocks
	BlockSize   int                // in bytes; 0 is the default of package blocks

	// Throttle slows loads down: each load reads one record per Throttle on
	// average. 0 does not.
	Throttle time.Duration

	// Bandwidth bounds how many bytes a second are fetched from the source. It is
	// shared by all who are given the same one. nil does not bound. See
	// NewBandwidth.
	Bandwidth *rate.Limiter

	// RequireSuccess makes a version without _SUCCESS one that does not exist
	// yet.
	RequireSuccess bool

	// AllowEmpty makes a version without data files, but with _SUCCESS, an
	// empty version rather than an error.
	AllowEmpty bool

	// Partitioner is "auto" or "", which finds out, or a name: "string" reads
	// every file whatever is in it; "hadoop", "spark" or "cascading" take the
	// files as cut by that function, which is proven on every record.
	Partitioner string

	// Fields says which fields of an Avro or Parquet record are its key and its
	// value.
	Fields Fields

	// Workers is how many partitions, or groups of files, are worked on at a
	// time. 0 is GOMAXPROCS, as it is while nothing loads.
	Workers int
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return background.Processors()
}

// A Loader plans and loads versions. Its methods may be called by several
// goroutines at a time.
type Loader struct {
	src     source.Source
	store   *blocks.Store
	metrics *metrics.Load
	opts    Options
}

// New returns a Loader from src into store. m may be nil.
func New(src source.Source, store *blocks.Store, m *metrics.Load, opts Options) *Loader {
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	return &Loader{src: marked{src}, store: store, metrics: m, opts: opts}
}

// A job is one call of Load.
type job struct {
	*Loader
	plan     *Plan
	dir      *blocks.Dir
	progress *Progress
	pacer    *pacer
}

// Load makes the blocks of the wanted partitions and publishes each as soon as
// it is complete. Those that are there already, made by the same plan, are
// kept. p, which may be nil, says meanwhile how far it is.
//
// Where it fails or ctx is cancelled, finished blocks stay and everything else
// is removed; all goroutines have ended when Load returns. Errors name the
// file and the offset, and wrap what they were caused by: ErrCorrupt of the
// input format, *PartitionError, ErrSource, source.ErrChanged, ENOSPC, ctx's own.
func (l *Loader) Load(ctx context.Context, plan *Plan, want []int, p *Progress) (err error) {
	defer background.Begin()()
	ended := l.metrics.Begin(plan.DB)
	defer func() {
		if err != nil {
			err = fmt.Errorf("loading version %s of %s: %w", plan.Version, plan.DB, err)
		}
		ended(err)
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	if p == nil {
		p = new(Progress)
	}
	want, err = plan.wanted(want)
	if err != nil {
		return err
	}
	dir, err := l.store.Create(plan.DB, plan.Version, plan.Manifest())
	if err != nil {
		return err
	}
	todo, err := missing(dir, want)
	if err != nil {
		return err
	}
	p.begin(len(want), len(want)-len(todo))
	j := &job{Loader: l, plan: plan, dir: dir, progress: p, pacer: newPacer(l.opts.Throttle)}
	if len(todo) == 0 {
		return nil
	}
	if plan.Aligned {
		return j.loadAligned(ctx, todo)
	}
	return j.loadRouted(ctx, todo)
}

// wanted returns the partitions in order, each once.
func (p *Plan) wanted(want []int) ([]int, error) {
	want = slices.Clone(want)
	slices.Sort(want)
	want = slices.Compact(want)
	if len(want) > 0 && (want[0] < 0 || want[len(want)-1] >= p.Partitions) {
		return nil, fmt.Errorf("partitions %v are wanted of %d", want, p.Partitions)
	}
	return want, nil
}

// missing returns the partitions of want that have no block.
func missing(dir *blocks.Dir, want []int) ([]int, error) {
	complete, err := dir.Complete()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(want), func(p int) bool {
		_, found := slices.BinarySearch(complete, p)
		return found
	}), nil
}

// expect tells the progress which files will be read.
func (j *job) expect(files []int) {
	var bytes int64
	for _, i := range files {
		bytes += j.plan.Files[i].Size
	}
	j.progress.files.Store(int64(len(files)))
	j.progress.bytes.Store(bytes)
	j.metrics.Files(j.plan.DB, int64(len(files)))
}
