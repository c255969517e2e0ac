package load

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/render"
	"sequins/metrics"
	"sequins/shard"
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
	Bandwidth *rate.Limiter `json:"-"`

	// RequireSuccess makes a version without _SUCCESS one that does not exist
	// yet.
	RequireSuccess bool

	// AllowEmpty makes a version without records an empty version rather than an
	// error: one whose files have none, and one without data files, but with _SUCCESS.
	AllowEmpty bool

	// Served is the hash of the plan by which the version is served already, if it is.
	// By this plan it may be without records.
	Served string `json:",omitempty"`

	// Partitioner is "auto" or "", which finds out, or a name: "string" reads
	// every file whatever is in it; "hadoop", "spark" or "cascading" take the
	// files as cut by that function, which is proven on every record.
	Partitioner string

	// Fields says which fields of an Avro or Parquet record are its key and its
	// value.
	Fields Fields

	// Workers is how many partitions, or groups of files, are worked on at a
	// time. 0 is GOMAXPROCS.
	Workers int
}

// PlannedBy returns o with what decides the records of a version and their partitions as it was when plan m was made.
// What m does not have, as it is of an older release, stays as it is in o.
func (o Options) PlannedBy(m blocks.Manifest) Options {
	if m.Fields != nil {
		o.Fields = Fields{Key: m.Fields.Key, Value: m.Fields.Value}
	}
	o.AllowEmpty = o.AllowEmpty || len(m.Files) == 0
	o.Served = m.PlanHash()
	o.Partitioner = m.Partitioner
	if m.Aligned && m.Partitioner == shard.String.String() {
		o.Partitioner = "auto" // only this finds that files are cut by it
	}
	return o
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// A Meter is told of what is read, several times a second and by several goroutines: see metrics.Load.
type Meter interface {
	Read(db string, bytes, records int64)
	Files(db string, left int64)
	File(db string, took time.Duration, left int64)
	Begin(db string) (end func(error))
}

// A Loader plans and loads versions. Its methods may be called by several
// goroutines at a time.
type Loader struct {
	src     source.Source
	store   *blocks.Store
	metrics Meter
	opts    Options
}

// New returns a Loader from src into store, which may be nil if Load is not called. m may be nil.
func New(src source.Source, store *blocks.Store, m Meter, opts Options) *Loader {
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	if m == nil {
		m = (*metrics.Load)(nil) // which counts nothing
	}
	return &Loader{src: marked{src}, store: store, metrics: m, opts: opts}
}

// A Target is where a load writes, and what.
type Target struct {
	Staging blocks.Staging
	Want    []int // partitions
	Have    int   // how many partitions more need not be loaded, for the progress
	// Publish publishes blocks that are finished in Staging, some at a time. It is called by one goroutine at
	// a time. Its error ends the load.
	Publish func(partitions []int) error
}

// A job is one call of LoadInto.
type job struct {
	*Loader
	plan      *Plan
	target    Target
	progress  *Progress
	pacer     *pacer
	publisher *publisher
}

// Load is LoadInto for the Loader's store, for programs that load without a node. Wanted partitions that are
// there already, made by the same plan, are kept.
func (l *Loader) Load(ctx context.Context, plan *Plan, want []int, p *Progress) error {
	want, err := plan.wanted(want)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := l.store.Create(plan.DB, plan.Version, plan.Manifest())
	if err != nil {
		return err
	}
	todo, err := dir.Missing(want)
	if err != nil {
		return err
	}
	to := dir.Staging()
	return l.LoadInto(ctx, plan, Target{Staging: to, Want: todo, Have: len(want) - len(todo), Publish: func(partitions []int) error {
		return dir.Publish(to, partitions...)
	}}, p)
}

// LoadInto makes the blocks of the wanted partitions, and publishes them as they are finished and the files
// of the version have been seen to be those of the plan. p, which may be nil, says meanwhile how far it is.
//
// Where it fails or ctx is cancelled, published blocks stay and everything else
// is removed; all goroutines have ended when LoadInto returns. Errors name the
// file and the offset, and wrap what they were caused by: ErrCorrupt of the
// input format, *PartitionError, ErrSource, source.ErrChanged, ENOSPC, ctx's own.
func (l *Loader) LoadInto(ctx context.Context, plan *Plan, to Target, p *Progress) (err error) {
	ended := l.metrics.Begin(plan.DB)
	defer func() {
		if err != nil {
			err = fmt.Errorf("loading version %s of %s: %w", plan.Version, plan.DB, err)
		}
		ended(err)
	}()
	if p == nil {
		p = new(Progress)
	}
	if to.Want, err = plan.wanted(to.Want); err != nil {
		return err
	}
	p.begin(len(to.Want)+to.Have, to.Have)
	if len(to.Want) == 0 {
		return ctx.Err()
	}
	j := &job{Loader: l, plan: plan, target: to, progress: p, pacer: newPacer(l.opts.Throttle)}
	j.publisher = &publisher{job: j}
	return j.loadAndPublish(ctx, func(ctx context.Context) error {
		if plan.Aligned {
			return j.loadAligned(ctx, to.Want)
		}
		return j.loadRouted(ctx, to.Want)
	})
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
