package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"sequins/input/finished"
	"sequins/shard"
	"sequins/source"
)

// readManifest reads the manifest of a version of finished blocks.
func (l *Loader) readManifest(ctx context.Context, plan *Plan) (data []byte, path string, err error) {
	path = l.src.Path(plan.DB, plan.Version) + "/" + source.BlocksFile
	f, err := l.Open(ctx, plan, source.File{Name: source.BlocksFile}, 0)
	if err != nil {
		return nil, path, err
	}
	data, err = io.ReadAll(io.LimitReader(f, finished.MaxSize+1)) // Parse refuses a longer one
	l.progress.fetched(int64(len(data)), 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	return data, path, nil
}

// planFinished plans a version of finished blocks from its manifest. The configured compression and block size have no
// effect on it.
func (l *Loader) planFinished(ctx context.Context, plan *Plan) error {
	data, path, err := l.readManifest(ctx, plan)
	if err != nil {
		return err
	}
	m, err := finished.Parse(data, path)
	if err != nil {
		return err
	}
	if err := m.Match(plan.Files); err != nil {
		if errors.Is(err, finished.ErrIncomplete) { // a manifest that has come since the files were listed
			err = fmt.Errorf("%w: %w", err, ErrIncomplete)
		}
		return fmt.Errorf("%s/%w", l.src.Path(plan.DB, plan.Version), err)
	}
	if err := l.agrees(m, path); err != nil {
		return err
	}
	if plan.Partitioner, err = shard.ParsePartitioner(m.Partitioner); err != nil {
		return err
	}
	if sum := sha256.Sum256(data); finishedInput(plan.Version, hex.EncodeToString(sum[:])).Hash != plan.Input {
		return fmt.Errorf("%s: %w", path, source.ErrChanged)
	}
	plan.ready = m
	plan.Partitions, plan.Aligned, plan.LastModified = m.Partitions, true, m.LastModified
	if m.Records() == 0 && !l.opts.AllowEmpty {
		return fmt.Errorf("%s: %w; allow_empty would make it an empty version", l.src.Path(plan.DB, plan.Version), ErrNoRecords)
	}
	return nil
}

// agrees returns an error if another partitioner is configured than the one that cut the blocks.
func (l *Loader) agrees(m *finished.Manifest, path string) error {
	switch l.opts.Partitioner {
	case "", "auto", m.Partitioner:
		return nil
	}
	if l.opts.Manifest != nil {
		return nil // that was so before
	}
	return fmt.Errorf("%s: the blocks are cut by the partitioner %q, and %q is configured for this db: configure %[2]q or \"auto\", or build the version with --partitioner %[3]s",
		path, m.Partitioner, l.opts.Partitioner)
}
