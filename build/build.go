// Package build turns one version of a source into a finished version: the blocks that a node would load of it, made once for
// all nodes, in a version directory of the same or another source.
//
// Run plans and loads the version as a node does, into a store in a temporary directory, with all partitions. Finished blocks
// are uploaded from there while others are built, and removed. The manifest is written after the last block, and
// _SUCCESS after the manifest: until then, nodes take the version for incomplete. If the build fails or is cancelled, it
// removes what it has written.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"sequins/finished"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
)

// ErrOccupied is wrapped by the error of Run for a target that has data.
var ErrOccupied = errors.New("the target is not empty")

// A Place is the directory of a version in a source.
type Place struct {
	Source      source.Source
	DB, Version string
}

func (p Place) String() string { return p.Source.Path(p.DB, p.Version) }

// A Job describes a build.
type Job struct {
	From    Place
	To      Place // its Source is a source.Creator
	Options load.Options
	Temp    string // directory for blocks that are not uploaded yet, and for sorting
	Release string // of sequins
	Force   bool   // replace what an unfinished build has left in To
}

// Run builds a version. p, which may be nil, is updated with the progress of reading. Errors are those of package load, of the
// target, ErrOccupied, or that of ctx.
func Run(ctx context.Context, j Job, p *load.Progress) (m *finished.Manifest, err error) {
	to, ok := j.To.Source.(source.Creator)
	if !ok {
		return nil, fmt.Errorf("%s: this source cannot be written to", j.To)
	}
	if err := j.prepare(ctx, to); err != nil {
		return nil, err
	}
	removeStale(j.Temp)
	dir, err := os.MkdirTemp(j.Temp, tempPrefix)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	local, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	b := &builder{Job: j, store: local, to: to, progress: p}
	return b.run(ctx)
}

// prepare checks that the target is empty, or empties it if Force allows that.
func (j *Job) prepare(ctx context.Context, to source.Creator) error {
	if below(j.From.String(), j.To.String()) {
		return fmt.Errorf("%s: %w: it is in the version to be built", j.To, ErrOccupied)
	}
	c, err := j.To.Source.Contents(ctx, j.To.DB, j.To.Version)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	left, err := j.leftovers(c)
	if err != nil || len(left) == 0 {
		return err
	}
	if !j.Force {
		return fmt.Errorf("%s: %w: it has %d files of a build that has not finished: if that does not run any more, use --force to replace them", j.To, ErrOccupied, len(left))
	}
	return to.Remove(ctx, j.To.DB, j.To.Version, left...)
}

// below reports whether a path is that of a directory or of something in it.
func below(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// leftovers returns the names of the files that an unfinished build has left, its manifest first. Anything else in the directory is an error.
func (j *Job) leftovers(c source.Contents) (left []string, err error) {
	if hasManifest(c) {
		left = append(left, source.BlocksFile)
	}
	for _, f := range c.Files {
		if !strings.HasSuffix(f.Name, source.BlockSuffix) {
			return nil, fmt.Errorf("%s: %w: it has %s; build into a directory of its own", j.To, ErrOccupied, f.Name)
		}
		left = append(left, f.Name)
	}
	for _, m := range c.Hidden {
		switch {
		case m.Name == source.SuccessFile:
			return nil, fmt.Errorf("%s: %w: it has %s, and versions must not change; build into a new version", j.To, ErrOccupied, m.Name)
		case m.Name == source.BlocksFile && !m.Dir:
			continue
		case m.Dir || !source.Unfinished(m.Name):
			return nil, fmt.Errorf("%s: %w: it has %s; build into a directory of its own", j.To, ErrOccupied, m.Name)
		}
		left = append(left, m.Name)
	}
	if len(c.Dirs) > 0 {
		return nil, fmt.Errorf("%s: %w: it has the directory %s; build into a directory of its own", j.To, ErrOccupied, c.Dirs[0])
	}
	return left, nil
}

// A builder is one build.
type builder struct {
	Job
	store    *store.Store
	to       source.Creator
	progress *load.Progress
}

// run builds the version with the first plan that no record refutes.
func (b *builder) run(ctx context.Context) (*finished.Manifest, error) {
	loader := load.New(b.From.Source, b.store, nil, b.Options)
	var refuted []shard.Partitioner
	for {
		plan, err := loader.Plan(ctx, b.From.DB, b.From.Version, refuted...)
		if err != nil {
			return nil, err
		}
		if plan.Format == load.FormatBlocks {
			return nil, fmt.Errorf("%s consists of finished blocks: copy the directory", b.From)
		}
		m, err := b.with(ctx, loader, plan)
		wrong, again := load.Refutes(err)
		if !again {
			return m, err
		}
		refuted = append(refuted, wrong) // at most as often as there are partitioners
	}
}

// with builds the version by a plan, and removes what it has written if that fails.
func (b *builder) with(ctx context.Context, loader *load.Loader, plan *load.Plan) (m *finished.Manifest, err error) {
	u := &uploader{Place: b.To, to: b.to, ctx: ctx, blocks: make([]finished.Block, plan.Partitions)}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.undo())
		}
	}()
	if u.dir, err = b.store.Create(plan.DB, plan.Manifest()); err != nil {
		return nil, err
	}
	staging := u.dir.Staging()
	want := make([]int, plan.Partitions)
	for p := range want {
		want[p] = p
	}
	err = loader.LoadInto(ctx, plan, load.Target{Staging: staging, Want: want, Publish: func(partitions []int) error {
		if err := u.dir.Publish(staging, partitions...); err != nil {
			return err
		}
		return u.upload(partitions)
	}}, b.progress)
	if err != nil {
		return nil, err
	}
	m = b.manifest(plan, u)
	return m, u.finish(m)
}

// manifest describes the uploaded blocks.
func (b *builder) manifest(plan *load.Plan, u *uploader) *finished.Manifest {
	m := &finished.Manifest{
		Release: b.Release, Partitions: plan.Partitions, Partitioner: plan.Partitioner.String(), Detected: plan.Auto,
		Input:        finished.Input{Path: strings.ToValidUTF8(b.From.String(), "\uFFFD"), Format: plan.Format, Files: len(plan.Files)},
		LastModified: plan.LastModified.UTC(), Compression: u.compression, BlockSize: u.blockSize, Blocks: u.blocks,
	}
	for _, f := range plan.Files {
		m.Input.Bytes += f.Size
	}
	if f := plan.Manifest().Fields; f != nil {
		m.Input.Key, m.Input.Value, m.Input.PartitionColumns = f.Key, f.Value, f.PartitionColumns
	}
	return m
}

// undoTimeout limits the removal of what a failed build has written.
const undoTimeout = time.Minute
