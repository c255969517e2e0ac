// Package build turns one version of a source into a finished version: the blocks that a node would load of it, made once for
// all nodes, in a directory of this machine.
//
// Run plans and loads the version as a node does, with all partitions, into a hidden directory beside the target. It adds
// the manifest and _SUCCESS, and gives the directory its name: the target is there as a whole or not at all. A build that
// was killed leaves the hidden directory, which the next build of the same target empties.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sequins/blocks"
	"sequins/input/finished"
	"sequins/internal/fsys"
	"sequins/internal/names"
	"sequins/internal/parallel"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
)

// ErrOccupied is wrapped by the error of Run for a target that exists, or that another build writes.
var ErrOccupied = errors.New("the target is occupied")

// A Place is the directory of a version in a source.
type Place struct {
	Source      source.Source
	DB, Version string
}

func (p Place) String() string { return p.Source.Path(p.DB, p.Version) }

// A Job describes a build.
type Job struct {
	From    Place
	To      string // directory, which must not exist
	Options load.Options
	Release string // of sequins
}

// Run builds a version. p, which may be nil, is updated with the progress of reading. Errors are those of package load, of the
// file system, ErrOccupied, or that of ctx.
func Run(ctx context.Context, j Job, p *load.Progress) (m *finished.Manifest, err error) {
	if strings.HasPrefix(j.To+"/", j.From.String()+"/") {
		return nil, fmt.Errorf("%s: %w: it is in the version to be built", j.To, ErrOccupied)
	}
	if err := j.checkAbsent(); err != nil {
		return nil, err
	}
	unlock, err := j.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(j.work()))
		}
	}()
	b := &builder{Job: j}
	if m, err = b.run(ctx, p); err != nil {
		return nil, err
	}
	return m, j.publish(m)
}

// workSuffix ends the name of the directory that becomes the target.
const workSuffix = ".building"

// work is the directory that becomes the target. No source lists a version of this name, which is cut to what file systems
// allow: two builds whose names differ only behind that exclude each other.
func (j *Job) work() string {
	dir, name := filepath.Split(j.To)
	return filepath.Join(dir, "."+name[:min(len(name), names.Max-len("."+workSuffix))]+workSuffix)
}

func (j *Job) checkAbsent() error {
	_, err := os.Lstat(j.To)
	if err == nil {
		return fmt.Errorf("%s: %w: it exists, and versions must not change; build a new version", j.To, ErrOccupied)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lock makes the working directory and keeps other builds from it. A build that ended meanwhile has renamed or removed
// the directory that was locked.
func (j *Job) lock() (unlock func(), err error) {
	if err := os.MkdirAll(j.work(), dirMode); err != nil {
		return nil, err
	}
	dir, err := os.Open(j.work())
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = isAt(dir, j.work())
	}
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, errElsewhere) {
		err = fmt.Errorf("%s: %w: another build writes it", j.To, ErrOccupied)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return func() { _ = dir.Close() }, nil // it was only opened for its lock
}

// errElsewhere means that a directory has been renamed or removed since it was opened.
var errElsewhere = errors.New("the directory was renamed or removed")

// isAt returns errElsewhere unless an open directory is the one at a path.
func isAt(dir *os.File, path string) error {
	locked, err := dir.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(locked, named) {
		return errElsewhere
	}
	return err
}

// publish writes the manifest and the marker, and gives the directory its name.
func (j *Job) publish(m *finished.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	dir := j.work()
	if err := writeFile(filepath.Join(dir, source.BlocksFile), data); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, source.SuccessFile), nil); err != nil {
		return err
	}
	if err := fsys.OS.SyncDir(dir); err != nil {
		return err
	}
	if err := os.Rename(dir, j.To); err != nil {
		return errors.Join(err, j.checkAbsent())
	}
	db := filepath.Dir(j.To)
	return errors.Join(fsys.OS.SyncDir(db), fsys.OS.SyncDir(filepath.Dir(db))) // which may be new, too
}

func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// A builder is one build, in its working directory.
type builder struct {
	Job

	blocks []finished.Block // by partition
}

// run builds the version with the first plan that no record refutes.
func (b *builder) run(ctx context.Context, p *load.Progress) (*finished.Manifest, error) {
	loader := load.New(b.From.Source, p, b.Options)
	var refuted []shard.Partitioner
	for {
		plan, err := loader.Plan(ctx, b.From.DB, b.From.Version, refuted...)
		if err != nil {
			return nil, err
		}
		if plan.Format == load.FormatBlocks {
			return nil, fmt.Errorf("%s consists of finished blocks: copy the directory", b.From)
		}
		err = b.load(ctx, loader, plan)
		wrong, again := load.Refutes(err)
		if err == nil {
			return &finished.Manifest{
				Release: b.Release, Partitions: plan.Partitions, Partitioner: plan.Partitioner.String(), LastModified: plan.LastModified.UTC(), Blocks: b.blocks,
			}, nil
		}
		if !again {
			return nil, err
		}
		refuted = append(refuted, wrong) // at most as often as there are partitioners
	}
}

// load builds all blocks by a plan.
func (b *builder) load(ctx context.Context, loader *load.Loader, plan *load.Plan) error {
	staging := store.Staging{Path: b.work()}
	if err := empty(b.work()); err != nil {
		return err
	}
	if err := os.Mkdir(staging.Temp(), 0o700); err != nil {
		return err
	}
	b.blocks = make([]finished.Block, plan.Partitions)
	want := make([]int, plan.Partitions)
	for p := range want {
		want[p] = p
	}
	err := loader.LoadInto(ctx, plan, load.Target{Staging: staging, Want: want, Publish: func(partitions []int) error {
		return parallel.Run(ctx, workers, len(partitions), func(_ context.Context, i int) error {
			return b.takeBlock(staging.FinishedPath(partitions[i]), partitions[i])
		})
	}})
	return errors.Join(err, os.RemoveAll(staging.Temp()))
}

// empty removes what a build that was killed, or a plan that was refuted, has left in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

const (
	workers = 4 // that sync blocks
	// fileMode and dirMode are the permissions of the target, less the umask for directories: nodes run as another user.
	fileMode, dirMode = 0o644, 0o755
)

// takeBlock gives a finished block its name in the target, and describes it for the manifest.
func (b *builder) takeBlock(path string, partition int) error {
	r, err := blocks.Open(path)
	if err != nil {
		return err
	}
	block := finished.Block{Name: finished.BlockName(partition), Size: r.Size(), Hash: r.Hash(), Records: r.Properties().Records}
	if err := errors.Join(r.Close(), share(path)); err != nil {
		return err
	}
	b.blocks[partition] = block
	return os.Rename(path, filepath.Join(b.work(), block.Name))
}

// share sets the permissions of a block durably.
func share(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(fileMode), f.Sync(), f.Close())
}
