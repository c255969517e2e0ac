package load

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/shard"
	"sequins/source"
)

// ErrIncomplete is wrapped by the error of Plan for a version that does not
// exist yet: the job that writes it is not done.
var ErrIncomplete = errors.New("the version is not complete yet")

// ErrEmpty is wrapped by the error of Plan for a version without data files.
var ErrEmpty = errors.New("there are no data files")

// ErrNoRecords is wrapped by the error of Plan for a version whose files have no records.
var ErrNoRecords = errors.New("there is no record in any of its files")

// ErrMixed is wrapped by the error of Plan or Load for a version with files of
// several formats, or with SequenceFiles of classes that are served in several forms.
var ErrMixed = errors.New("files of several formats are mixed")

// The names of the input formats, as in Plan.Format.
const (
	FormatSequenceFile = "sequencefile"
	FormatSparkey      = "sparkey"
	FormatAvro         = "avro"
	FormatParquet      = "parquet"
)

// MaxPartitions is how many partitions a version can have. ZooKeeper and every
// file system are in trouble long before.
const MaxPartitions = 1 << 16

// A Plan says how a version is loaded. All nodes that know of the same refuted
// partitioners make the same plan of a version. It is immutable, and made by
// Loader.Plan only.
type Plan struct {
	DB, Version  string
	Format       string
	Files        []source.File // those with data, in the order of their names
	Partitions   int           // 1 or more, also if there are no files
	Partitioner  shard.Partitioner
	Aligned      bool      // each file holds the keys of one partition and no others
	LastModified time.Time // of the newest file; zero without files

	// Auto is set where the partitioner was found in a sample: a record can prove
	// it wrong, see Refutes.
	Auto bool
	// Refuted are the partitioners that were not to be chosen, in order.
	Refuted []shard.Partitioner

	parts   []int  // the partition of each file if Aligned
	witness string // a file that has the format
	fields  Fields
	classes *recordClasses // of SequenceFiles, as they are opened
	sampled bool           // a record was found while the partitioner was
}

// Manifest returns the plan as the store keeps it.
func (p *Plan) Manifest() blocks.Manifest {
	m := blocks.Manifest{
		DB: p.DB, Version: p.Version, Format: p.contents(), Partitions: p.Partitions,
		Partitioner: p.Partitioner.String(), Aligned: p.Aligned,
		LastModified: p.LastModified, Created: time.Now(),
	}
	for _, f := range p.Files {
		m.Files = append(m.Files, blocks.ManifestFile{Name: f.Name, Size: f.Size, ModTime: f.ModTime})
	}
	if p.hasFields() {
		m.Fields = &blocks.Fields{Key: p.fields.Key, Value: p.fields.Value}
	}
	for _, r := range p.Refuted {
		m.Refuted = append(m.Refuted, r.String())
	}
	return m
}

// contents is the format, and which fields of it are served where it has some:
// blocks with other fields are other blocks.
func (p *Plan) contents() string {
	if !p.hasFields() {
		return p.Format
	}
	sum := sha256.Sum256([]byte(p.fields.Key + "\x00" + p.fields.Value)) // names can be long, and this is short
	return fmt.Sprintf("%s %x", p.Format, sum[:8])
}

func (p *Plan) hasFields() bool { return p.Format == FormatAvro || p.Format == FormatParquet }

// Plan looks at a version in the source and decides how to load it. Errors
// wrap ErrIncomplete where the version does not exist yet, ErrEmpty where it
// has no data files, ErrNoRecords where these have no records, ErrMixed where they are of several formats, ErrCorrupt
// of the format where one is damaged or alien, and name the file.
//
// refuted are the partitioners that are known not to be this version's, as
// Refutes returns them, from this node's loads or another's, or as Refuted does,
// so that a restart comes to the plan from before. Where the configuration names
// a partitioner, they have no effect.
func (l *Loader) Plan(ctx context.Context, db, version string, refuted ...shard.Partitioner) (*Plan, error) {
	plan, err := l.plan(ctx, db, version, refuted)
	if err != nil {
		return nil, fmt.Errorf("planning version %s of %s: %w", version, db, err)
	}
	return plan, nil
}

// list returns the data files of a version, and their format as far as their names tell it. A plan is made
// from it, and what is loaded by the plan is published only if it has stayed the same: see publisher.
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
	fits, err := plan.place()
	if err != nil {
		return nil, err
	}
	if err := l.choose(ctx, plan, fits, refuted); err != nil {
		return nil, err
	}
	return plan, l.requireRecords(ctx, plan)
}

// planEmpty plans a version without data: one partition, whose block is empty.
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
	return f.Close()
}

// choose decides by which function keys belong to partitions, and whether the
// files are cut by it. fits reports whether they can be, by their names.
func (l *Loader) choose(ctx context.Context, plan *Plan, fits bool, refuted []shard.Partitioner) (err error) {
	switch name := l.opts.Partitioner; name {
	case "", "auto":
		plan.Auto = true
		if !fits {
			return nil // string, every file
		}
		plan.Refuted = unique(slices.Clone(refuted))
		plan.Partitioner, plan.Aligned, err = l.detect(ctx, plan)
	case shard.String.String():
		// Every file is read: this works with any files.
	default:
		plan.Partitioner, err = shard.ParsePartitioner(name)
		plan.Aligned = fits
	}
	return err
}

// Refuted returns the partitioners that are refuted by the plan of a manifest, for another plan of its version.
func Refuted(m blocks.Manifest) []shard.Partitioner {
	var all []shard.Partitioner
	for _, name := range m.Refuted {
		if p, err := shard.ParsePartitioner(name); err == nil { // else it is of a later release
			all = append(all, p)
		}
	}
	return all
}

func unique(ps []shard.Partitioner) []shard.Partitioner {
	slices.Sort(ps)
	return slices.Compact(ps)
}
