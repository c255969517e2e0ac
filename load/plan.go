package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sequins/input/finished"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
)

// ErrIncomplete is wrapped by the error of Plan for a version that is not complete: the job that writes
// it is not done.
var ErrIncomplete = errors.New("the version is not complete yet")

// ErrEmpty is wrapped by the error of Plan for a version without data files.
var ErrEmpty = errors.New("there are no data files")

// ErrNoRecords is wrapped by the error of Plan for a version whose files have no records.
var ErrNoRecords = errors.New("there is no record in any of its files")

// ErrMixed is wrapped by the error of Plan or Load for a version with files of several formats, or with
// SequenceFiles whose classes are served in different forms.
var ErrMixed = errors.New("files of several formats are mixed")

// The names of the input formats in Plan.Format.
const (
	FormatSequenceFile = "sequencefile"
	FormatSparkey      = "sparkey"
	FormatAvro         = "avro"
	FormatParquet      = "parquet"
	FormatBlocks       = "blocks" // finished blocks, see package finished
)

// A Plan describes how to load a content. All nodes that know the same refuted partitioners make the
// same plan. It is immutable and made only by a Loader.
type Plan struct {
	DB, Version  string
	Input        string // the hash of the input, see Options.Input
	Format       string
	Files        []source.File // data files, ordered by name
	Partitions   int           // at least 1, even without files
	Partitioner  shard.Partitioner
	Aligned      bool      // each file holds the keys of exactly one partition
	LastModified time.Time // of the newest file; zero without files

	// Auto reports whether the partitioner was detected from a sample. Then a record can refute it, see
	// Refutes.
	Auto bool

	refuted []shard.Partitioner // that were excluded
	parts   []int               // the partition of each file if Aligned
	witness string              // a file of the format
	fields  Fields
	columns Columns            // with Options.PartitionColumns
	classes *recordClasses     // of the SequenceFiles opened so far
	sampled bool               // the sample contained a record
	ready   *finished.Manifest // of finished blocks; nil otherwise
}

// Manifest returns the plan in the form that the store keeps.
func (p *Plan) Manifest() store.Manifest {
	m := store.Manifest{
		DB: p.DB, Version: p.Version, Input: p.Input, Format: p.Format, Partitions: p.Partitions,
		Partitioner: p.Partitioner.String(), Aligned: p.Aligned, LastModified: p.LastModified,
	}
	for _, f := range p.Files {
		m.Files = append(m.Files, store.ManifestFile{Name: f.Name, Size: f.Size, Mark: f.Mark})
	}
	if p.Format == FormatAvro || p.Format == FormatParquet {
		m.Fields = &store.Fields{Key: p.fields.Key, Value: p.fields.Value, PartitionColumns: len(p.columns) > 0}
	}
	return m
}

// Plan inspects a version in the source and decides how to load it. Errors name the file and wrap
// ErrIncomplete if the version is not complete, ErrEmpty if it has no data files, ErrNoRecords if these
// have no records, ErrMixed if their formats differ, or ErrCorrupt of the format if a file is damaged
// or of an unknown format.
//
// refuted are partitioners that are known not to be this version's, as Refutes returned them for loads of
// this node or others. They have no effect if the configuration names a partitioner.
func (l *Loader) Plan(ctx context.Context, db, version string, refuted ...shard.Partitioner) (*Plan, error) {
	return l.PlanInput(ctx, db, content.Input{Name: version}, refuted...)
}

// PlanInput is Plan for one input of a version: if the source lists another one, the error wraps source.ErrChanged. Without a hash, in is
// the input that the source lists. With Options.Manifest, in is not used.
func (l *Loader) PlanInput(ctx context.Context, db string, in content.Input, refuted ...shard.Partitioner) (*Plan, error) {
	if m := l.opts.Manifest; m != nil {
		in = m.Content().Input
	}
	plan, err := l.plan(ctx, db, in, refuted)
	if err != nil {
		return nil, fmt.Errorf("planning version %s of %s: %w", in.Name, db, err)
	}
	return plan, nil
}

func (l *Loader) plan(ctx context.Context, db string, in content.Input, refuted []shard.Partitioner) (_ *Plan, err error) {
	files, err := l.list(ctx, db, in.Name)
	if err != nil {
		return nil, err
	}
	if in, err = l.inputOf(files, db, in); err != nil {
		return nil, err
	}
	plan := &Plan{DB: db, Version: in.Name, Input: in.Hash, Format: files.format, Files: files.data,
		refuted: slices.Clone(refuted), fields: l.opts.Fields, classes: new(recordClasses)}
	if plan.Format == FormatBlocks {
		return plan, l.planFinished(ctx, plan)
	}
	for _, f := range plan.Files {
		if f.ModTime.After(plan.LastModified) {
			plan.LastModified = f.ModTime
		}
	}
	if len(plan.Files) == 0 {
		return plan, l.planEmpty(plan, files.listing)
	}
	if plan.Format != FormatSparkey {
		if err := l.sniff(ctx, plan); err != nil {
			return nil, err
		}
	}
	if err := l.setColumns(plan); err != nil {
		return nil, err
	}
	names, err := plan.place(l.opts.Partitions)
	if err != nil {
		return nil, err
	}
	if err := l.choose(ctx, plan, names); err != nil {
		return nil, err
	}
	return plan, l.requireRecords(ctx, plan)
}

// planEmpty plans a version without data files: one partition with an empty block.
func (l *Loader) planEmpty(plan *Plan, listing source.Listing) error {
	path := l.src.Path(plan.DB, plan.Version)
	switch {
	case !l.opts.AllowEmpty:
		return fmt.Errorf("%s: %w", path, ErrEmpty)
	case !listing.Success:
		return fmt.Errorf("%s: %w, and no %s file", path, ErrEmpty, source.SuccessFile)
	case listing.Blocks != "": // they were deleted
		return fmt.Errorf("%s: %w: there is %s, and none of its blocks", path, finished.ErrCorrupt, source.BlocksFile)
	}
	plan.Partitions, plan.Aligned = 1, true
	return nil
}

// choose decides which partitioner to use, and whether the files are cut by it, as far as their names allow that.
func (l *Loader) choose(ctx context.Context, plan *Plan, names layout) error {
	name := l.opts.Partitioner
	plan.Auto = name == "" || name == "auto"
	if m := l.opts.Manifest; m != nil {
		return plan.repeat(m)
	}
	switch name {
	case "", "auto":
		if !names.fits() {
			return nil // String, not aligned
		}
		return l.detect(ctx, plan, names)
	case shard.String.String():
		return nil // Every file is read: this works with any files.
	default:
		by, err := shard.ParsePartitioner(name)
		if err != nil {
			return err
		}
		return l.cutBy(ctx, plan, names, by)
	}
}

// repeat takes the division of an earlier plan of the same files.
func (p *Plan) repeat(m *store.Manifest) (err error) {
	if m.Aligned && slices.ContainsFunc(p.parts, func(part int) bool { return part >= m.Partitions }) {
		return fmt.Errorf("the plan of version %s of %s has %d partitions, and one of its files is of another", m.Version, m.DB, m.Partitions)
	}
	p.Partitions, p.Aligned = m.Partitions, m.Aligned
	p.Partitioner, err = shard.ParsePartitioner(m.Partitioner)
	return err
}
