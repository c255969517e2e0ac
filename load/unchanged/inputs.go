package unchanged

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"

	"sequins/internal/parallel"
	"sequins/source"
)

// scheme is part of all hashes. It has to change when blocks of the same input become different.
const scheme = "sequins block 3\n"

const (
	// atOnce is how many checksums are asked for at a time, and how many files are read.
	atOnce = 8
	// headSize is how much of a file is read to see whether hashing all of it may be of use. The headers of SequenceFiles and Avro
	// files, which have a random marker, fit.
	headSize = 4 << 10
	// outlineDigits is how much of the hash of the heads is in what a block says that it was made from.
	outlineDigits = 16
)

// A group is the files that the blocks of one partition, or of all, are made from. Its functions return a hash of a fact of each file, or "" if the fact
// cannot be known of one file, which is final for this load.
type group struct {
	heads func() string // of the beginnings
	sums  func() string // of the checksums before the load
	read  func() string // of the checksums of what was loaded
}

// group returns the group of a partition: all partitions have the same files if these are not aligned.
func (r *Reuse) group(p int) *group { return &r.groups[min(p, len(r.groups)-1)] }

// input returns the hash of the input of a partition, by a hash of its files; "" if that is "".
func (r *Reuse) input(p int, files string) string {
	if files == "" {
		return ""
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s%d %s\n%d of %d %s\n", scheme, len(r.settings), r.settings, p, r.plan.Partitions, files))
	return hex.EncodeToString(h[:])
}

// hashFiles returns a hash of a fact of each file; "" if one cannot be known. Of a file's name, only the columns in directories can be
// part of a block.
func (r *Reuse) hashFiles(ctx context.Context, files []source.File, ask func(context.Context, source.File) (string, error)) string {
	facts := make([]string, len(files))
	if parallel.Run(ctx, min(atOnce, len(files)), len(files), func(ctx context.Context, i int) (err error) {
		facts[i], err = ask(ctx, files[i]) // what is wrong with a file is an error of its load
		if err == nil && facts[i] == "" {
			err = errors.New("the checksum is not known")
		}
		return err
	}) != nil {
		return ""
	}
	h := sha256.New()
	for i, f := range files {
		fmt.Fprintf(h, "%d %q", f.Size, facts[i])
		if r.columns {
			fmt.Fprintf(h, " %q", fmt.Sprintf("%#v", source.Columns(f.Name)))
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// head returns a hash of the beginning of a file that has to be read for its checksum.
func (r *Reuse) head(ctx context.Context, file source.File) (string, error) {
	if r.sums.knows(file) {
		return "none", nil
	}
	h := sha256.New()
	if err := r.readInto(ctx, h, file, headSize); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checksum returns the checksum of a file as it was read last, and reads the file if it has to.
func (r *Reuse) checksum(ctx context.Context, file source.File) (string, error) {
	if file.Sum != "" {
		return file.Sum, nil
	}
	if sum := r.sums.sum(file); sum != "" {
		return sum, nil
	}
	if c := r.sums.checksummer; c != nil {
		sum, err := c.Checksum(ctx, r.plan.DB, r.plan.Version, file)
		r.sums.set(file, sum)
		return sum, err
	}
	if err := r.readInto(ctx, io.Discard, file, math.MaxInt64); err != nil {
		return "", err
	}
	return r.sums.sum(file), nil // the loader reads from Sums
}

func (r *Reuse) readInto(ctx context.Context, w io.Writer, file source.File, most int64) error {
	f, err := r.loader.Open(ctx, r.plan, file, 0)
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, f, most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
