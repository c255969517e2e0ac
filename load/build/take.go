package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sequins/blocks"
	"sequins/input/finished"
	"sequins/internal/parallel"
	"sequins/store"
)

const (
	workers = 4 // that hash blocks
	// readBuffer is how many bytes of a block are read and hashed at a time.
	readBuffer = 256 << 10
	// fileMode and dirMode are the permissions of the target, less the umask for directories: nodes run as another user.
	fileMode, dirMode = 0o644, 0o755
)

// take gives finished blocks their names in the target, and describes them for the manifest.
func (b *builder) take(ctx context.Context, staging store.Staging, partitions []int) error {
	return parallel.Run(ctx, workers, len(partitions), func(_ context.Context, i int) error {
		return b.takeBlock(staging.FinishedPath(partitions[i]), partitions[i])
	})
}

func (b *builder) takeBlock(path string, partition int) error {
	r, err := blocks.Open(path)
	if err != nil {
		return err
	}
	props := r.Properties()
	block := finished.Block{Partition: partition, Name: finished.BlockName(partition), Size: r.Size(), ContentHash: props.ContentHash, Records: props.Records}
	if err := r.Close(); err != nil {
		return err
	}
	if block.SHA256, err = hashFile(path); err != nil {
		return err
	}
	b.mu.Lock()
	b.blocks[partition], b.compression, b.blockSize = block, props.Compression, props.BlockSize
	b.mu.Unlock()
	return os.Rename(path, filepath.Join(b.work(), block.Name))
}

// hashFile returns the SHA-256 of a block, whose permissions it sets durably.
func hashFile(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := errors.Join(f.Chmod(fileMode), f.Sync()); err != nil {
		return "", err
	}
	hash := sha256.New()
	if _, err := io.CopyBuffer(hash, struct{ io.Reader }{f}, make([]byte, readBuffer)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}
