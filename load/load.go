package load

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/render"
	"sequins/source"
	"sequins/store"
)

// DefaultMemory is the default of Options.Memory, in bytes.
const DefaultMemory = 256 << 20

// Fields are the names of the record fields that hold the key and the value. Dots separate the names of
// nested fields. An empty value name selects the whole record, as JSON.
type Fields = render.Paths

// ErrField is wrapped by errors for fields that do not exist or cannot be a key, and for a key that is not set.
var ErrField = render.ErrField

// Options are the settings of a Loader.
type Options struct {
	// Memory limits the memory of all external sorts of a load, in bytes. 0 means DefaultMemory.
	// Batches in transit and the filter of each unfinished block come on top: about 25 MiB per worker.
	Memory int64

	Compression blocks.Compression // of blocks
	BlockSize   int                // in bytes; 0 means the default of package blocks

	// Throttle slows loads down: each load reads one record per Throttle on average. 0 disables it.
	Throttle time.Duration

	// Bandwidth limits the bytes per second that are read from the source. Loads may share a limiter.
	// nil means no limit.
	Bandwidth *rate.Limiter `json:"-"`

	// RequireSuccess makes Plan treat a version without _SUCCESS as incomplete.
	RequireSuccess bool

	// AllowEmpty allows versions without records: those whose files have none, and those with _SUCCESS
	// but without data files.
	AllowEmpty bool

	// Partitioner is "auto" or "", which detects it, or a name: "string" reads every file and works
	// with any files; the other names of package shard assume that the files are cut by that function,
	// and check it for every record.
	Partitioner string

	// Partitions is the number of partitions. 0 means that of the files, or, if the files are cut by a function that puts their
	// keys where they are only in another number of partitions, that number.
	Partitions int `json:",omitempty"`

	// Manifest is an earlier plan, of this node or another one, that is to be repeated; nil to make one. See PlannedBy.
	Manifest *store.Manifest `json:",omitempty"`

	// Fields selects the key and the value in Avro and Parquet records.
	Fields Fields

	// PartitionColumns adds the columns in the names of directories (day=2026-01-31) to the values, which must be whole
	// records of Avro or Parquet.
	PartitionColumns bool `json:",omitempty"`

	// MaxRecordErrors is how many records of the files that are read may be left out, because their key is null or their
	// key or value is too long. With more the load fails. It does not decide which records a block has, and so is not part of Input.
	MaxRecordErrors int64 `json:",omitempty"`

	// Workers is how many partitions, or groups of files, are processed in parallel. 0 means
	// GOMAXPROCS.
	Workers int
}

// PlannedBy returns o with the settings that determine the records and partitions of a content set as
// they were when plan m was made. A plan with these options has the division of m, and no file is sampled for it. Unless the partitioner is
// configured, a record can refute it.
func (o Options) PlannedBy(m store.Manifest) Options {
	if m.Fields != nil {
		o.Fields = Fields{Key: m.Fields.Key, Value: m.Fields.Value}
		o.PartitionColumns = m.Fields.PartitionColumns
	}
	o.AllowEmpty, o.RequireSuccess = true, false // it was complete then, by the rules that held then
	o.Partitions, o.Manifest = m.Partitions, &m
	return o
}

func (o Options) workers() int { return cmp.Or(o.Workers, runtime.GOMAXPROCS(0)) }

// A Loader plans and loads versions. It is safe for concurrent use.
type Loader struct {
	src      *marked
	progress *Progress
	opts     Options

	tolerance *tolerance
}

// New returns a Loader from src. p, which may be nil, is updated with what is read, also
// by plans, and with the progress of loads, of which then only one may run at a time.
func New(src source.Source, p *Progress, opts Options) *Loader {
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	return &Loader{src: &marked{Source: src}, progress: cmp.Or(p, new(Progress)), opts: opts, tolerance: newTolerance(opts.MaxRecordErrors)}
}

// A Target is the destination of a load.
type Target struct {
	Staging store.Staging
	Want    []int // partitions
	Have    int   // number of other partitions, already present, for the progress
	// MadeFrom returns what the block of a partition says that it was made from, see package unchanged. It is called concurrently, after
	// the partition's files have been read. nil is for blocks that do not say it.
	MadeFrom func(partition int) string
	// Publish publishes blocks that are finished in Staging. It is not called concurrently. An error
	// ends the load.
	Publish func(partitions []int) error
}

// A job is one call of LoadInto.
type job struct {
	*Loader
	plan      *Plan
	target    Target
	pacer     *rate.Limiter
	publisher *publisher
}

// LoadInto builds the blocks of the wanted partitions. It publishes finished blocks after it has
// checked that the files of the version are still those of the plan.
//
// If the load fails or ctx is canceled, published blocks stay and everything else is removed. All
// goroutines have ended when LoadInto returns. Errors name the file and the offset, and wrap their
// cause: ErrCorrupt of the input format or of package finished, *PartitionError, ErrSource, source.ErrChanged, ENOSPC, or that
// of ctx.
func (l *Loader) LoadInto(ctx context.Context, plan *Plan, to Target) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("loading version %s of %s: %w", plan.Version, plan.DB, err)
		}
	}()
	if to.Want, err = plan.wanted(to.Want); err != nil {
		return err
	}
	l.progress.begin(len(to.Want)+to.Have, to.Have)
	if len(to.Want) == 0 {
		return ctx.Err()
	}
	own := *l
	own.tolerance = newTolerance(l.opts.MaxRecordErrors)
	j := &job{Loader: &own, plan: plan, target: to, pacer: newPacer(l.opts.Throttle)}
	j.publisher = &publisher{job: j}
	return j.loadAndPublish(ctx, func(ctx context.Context) error {
		if plan.ready != nil {
			return j.copyBlocks(ctx, to.Want)
		}
		if plan.Aligned {
			return j.loadAligned(ctx, to.Want)
		}
		return j.loadRouted(ctx, to.Want)
	})
}

// wanted returns the partitions sorted and without duplicates.
func (p *Plan) wanted(want []int) ([]int, error) {
	want = slices.Compact(slices.Sorted(slices.Values(want)))
	if len(want) > 0 && (want[0] < 0 || want[len(want)-1] >= p.Partitions) {
		return nil, fmt.Errorf("partitions %v are wanted of %d", want, p.Partitions)
	}
	return want, nil
}

// expect sets the files to read in the progress.
func (j *job) expect(files []int) {
	var bytes, empty int64
	for _, i := range files {
		bytes += j.plan.Files[i].Size
		if j.plan.Files[i].Size == 0 {
			empty++
		}
	}
	j.progress.update(func(now *Snapshot) { now.Files, now.Empty, now.Bytes = int64(len(files)), empty, bytes })
}
