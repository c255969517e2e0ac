package load

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

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

// A Plan describes how to load a version. All nodes that know the same refuted partitioners make the
// same plan. It is immutable and made only by Loader.Plan.
type Plan struct {
	DB, Version  string
	Format       string
	Files        []source.File // data files, ordered by name
	Partitions   int           // at least 1, even without files
	Partitioner  shard.Partitioner
	Aligned      bool      // each file holds the keys of exactly one partition
	LastModified time.Time // of the newest file; zero without files

	// Auto reports whether the partitioner was detected from a sample. Then a record can refute it, see
	// Refutes.
	Auto bool
	// Refuted are the partitioners that were excluded, sorted.
	Refuted []shard.Partitioner

	parts   []int  // the partition of each file if Aligned
	witness string // a file of the format
	fields  Fields
	columns Columns        // with Options.PartitionColumns
	classes *recordClasses // of the SequenceFiles opened so far
	sampled bool           // the sample contained a record
	ready   *ready         // of finished blocks; nil otherwise
}

// Manifest returns the plan in the form that the store keeps.
func (p *Plan) Manifest() store.Manifest {
	m := store.Manifest{
		DB: p.DB, Version: p.Version, Format: p.contents(), Partitions: p.Partitions,
		Partitioner: p.Partitioner.String(), Aligned: p.Aligned,
		LastModified: p.LastModified, Created: time.Now(),
	}
	for _, f := range p.Files {
		m.Files = append(m.Files, store.ManifestFile{Name: f.Name, Size: f.Size, Mark: f.Mark})
	}
	if p.hasFields() {
		m.Fields = &store.Fields{Key: p.fields.Key, Value: p.fields.Value, PartitionColumns: len(p.columns) > 0}
	}
	for _, r := range p.Refuted {
		m.Refuted = append(m.Refuted, r.String())
	}
	return m
}

// contents returns the format, with a hash of the selected fields if the format has fields, because
// blocks with other fields differ, or with a hash of the manifest of finished blocks.
func (p *Plan) contents() string {
	if p.ready != nil {
		return p.ready.contents()
	}
	if !p.hasFields() {
		return p.Format
	}
	selected := p.fields.Key + "\x00" + p.fields.Value // names can be long
	if len(p.columns) > 0 {
		selected += "\x00partition columns"
	}
	sum := sha256.Sum256([]byte(selected))
	return fmt.Sprintf("%s %x", p.Format, sum[:8])
}

func (p *Plan) hasFields() bool { return p.Format == FormatAvro || p.Format == FormatParquet }

// Plan inspects a version in the source and decides how to load it. Errors name the file and wrap
// ErrIncomplete if the version is not complete, ErrEmpty if it has no data files, ErrNoRecords if these
// have no records, ErrMixed if their formats differ, or ErrCorrupt of the format if a file is damaged
// or of an unknown format.
//
// refuted are partitioners that are known not to be this version's: returned by Refutes, for loads of
// this node or others, or by Refuted, so that the plan is the same after a restart. They have no effect
// if the configuration names a partitioner.
func (l *Loader) Plan(ctx context.Context, db, version string, refuted ...shard.Partitioner) (*Plan, error) {
	plan, err := l.plan(ctx, db, version, refuted)
	if err != nil {
		return nil, fmt.Errorf("planning version %s of %s: %w", version, db, err)
	}
	return plan, nil
}

// list returns the data files of a version, and their format as far as the names tell it. A plan is
// made from this list, and its blocks are published only if the list has not changed, see publisher.
func (l *Loader) list(ctx context.Context, db, version string) (format string, data []source.File, err error) {
	listing, err := source.List(ctx, l.src, db, version, l.opts.RequireSuccess)
	if err != nil {
		return "", nil, err
	}
	if listing.Incomplete != "" {
		return "", nil, fmt.Errorf("%w: %s", ErrIncomplete, listing.Incomplete)
	}
	return classify(listing.Files)
}

func (l *Loader) plan(ctx context.Context, db, version string, refuted []shard.Partitioner) (_ *Plan, err error) {
	plan := &Plan{DB: db, Version: version, fields: l.opts.Fields, classes: new(recordClasses)}
	if plan.Format, plan.Files, err = l.list(ctx, db, version); err != nil {
		return nil, err
	}
	if plan.Format == FormatBlocks {
		return plan, l.planFinished(ctx, plan)
	}
	for _, f := range plan.Files {
		if f.ModTime.After(plan.LastModified) {
			plan.LastModified = f.ModTime
		}
	}
	if len(plan.Files) == 0 {
		return plan, l.planEmpty(ctx, plan)
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
	if err := l.choose(ctx, plan, names, refuted); err != nil {
		return nil, err
	}
	return plan, l.requireRecords(ctx, plan)
}

// planEmpty plans a version without data files: one partition with an empty block.
func (l *Loader) planEmpty(ctx context.Context, plan *Plan) error {
	if !l.opts.AllowEmpty {
		return fmt.Errorf("%s: %w", l.src.Path(plan.DB, plan.Version), ErrEmpty)
	}
	f, err := l.src.Open(ctx, plan.DB, plan.Version, source.File{Name: source.SuccessFile}, source.ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w, and no %s file", l.src.Path(plan.DB, plan.Version), ErrEmpty, source.SuccessFile)
	}
	if err != nil {
		return err
	}
	plan.Partitions, plan.Aligned = 1, true
	return errors.Join(f.Close(), l.refuseManifest(ctx, plan))
}

// choose decides which partitioner to use, and whether the files are cut by it, as far as their names allow that.
func (l *Loader) choose(ctx context.Context, plan *Plan, names layout, refuted []shard.Partitioner) error {
	if l.opts.Aligned != nil {
		return l.repeat(plan)
	}
	switch name := l.opts.Partitioner; name {
	case "", "auto":
		plan.Auto = true
		if !names.fits() {
			return nil // String, not aligned
		}
		plan.Refuted = unique(slices.Clone(refuted))
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

// repeat chooses what an earlier plan has. If the files have changed so that they cannot be aligned by it, the plan is another one.
func (l *Loader) repeat(plan *Plan) (err error) {
	plan.Partitions = l.opts.Partitions
	plan.Aligned = *l.opts.Aligned && !slices.ContainsFunc(plan.parts, func(p int) bool { return p >= plan.Partitions })
	plan.Partitioner, err = shard.ParsePartitioner(l.opts.Partitioner)
	return err
}

// Refuted returns the partitioners that the plan in a manifest excludes, for another plan of the
// version.
func Refuted(m store.Manifest) []shard.Partitioner {
	var all []shard.Partitioner
	for _, name := range m.Refuted {
		if p, err := shard.ParsePartitioner(name); err == nil { // a later release may know others
			all = append(all, p)
		}
	}
	return all
}

func unique(ps []shard.Partitioner) []shard.Partitioner {
	slices.Sort(ps)
	return slices.Compact(ps)
}
