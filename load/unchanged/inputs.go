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
	"sequins/load"
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
	// outlineDigits is the length of store.Made.Outline.
	outlineDigits = 16
)

// facts are what is known of files, by name; "" of a file of which it cannot be known, which is final for this load.
type facts map[string]string

// inputs returns the hash of the input of each partition, by one fact of each of its files, for which ask is called if it is not known.
// Partitions with a file of which it cannot be known are left out. The error is that of ctx.
func (r *Reuse) inputs(ctx context.Context, partitions []int, known facts, ask func(context.Context, source.File) (string, error)) (map[int]string, error) {
	groups := make(map[int]string)
	var files []source.File
	for _, p := range partitions {
		g := r.group(p)
		if _, found := groups[g]; found {
			continue
		}
		groups[g] = ""
		for _, f := range r.files[g] {
			if _, ok := known[f.Name]; !ok {
				files = append(files, f)
			}
		}
	}
	answers := make([]string, len(files))
	if err := parallel.Run(ctx, min(atOnce, len(files)), len(files), func(ctx context.Context, i int) error {
		answers[i], _ = ask(ctx, files[i]) // what is wrong with a file is an error of its load
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	for i, f := range files {
		known[f.Name] = answers[i]
	}
	for g := range groups {
		groups[g] = r.hashFiles(r.files[g], known)
	}
	inputs := make(map[int]string, len(partitions))
	for _, p := range partitions {
		if of := groups[r.group(p)]; of != "" {
			h := sha256.Sum256(fmt.Appendf(nil, "%s%d %s\n%d of %d %s\n", scheme, len(r.settings), r.settings, p, r.plan.Partitions, of))
			inputs[p] = hex.EncodeToString(h[:])
		}
	}
	return inputs, nil
}

// group returns the index in files of those of a partition: all partitions have the same files if these are not aligned.
func (r *Reuse) group(p int) int { return min(p, len(r.files)-1) }

// hashFiles returns a hash of what is known of files; "" if one is not known. Of a file's name, only the columns in directories can be
// part of a block.
func (r *Reuse) hashFiles(files []source.File, known facts) string {
	h := sha256.New()
	for _, f := range files {
		if known[f.Name] == "" {
			return ""
		}
		fmt.Fprintf(h, "%d %q", f.Size, known[f.Name])
		if r.columns {
			fmt.Fprintf(h, " %q", fmt.Sprintf("%#v", source.Columns(f.Name)))
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// head returns a hash of the beginning of a file that has to be read for its checksum.
func (r *Reuse) head(ctx context.Context, file source.File) (string, error) {
	if r.plan.Format == load.FormatBlocks || r.sums.knows(file) {
		return "none", nil
	}
	h := sha256.New()
	if err := r.readInto(ctx, h, file, headSize); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checksum returns the checksum of a file, and reads the file if it has to.
func (r *Reuse) checksum(ctx context.Context, file source.File) (string, error) {
	switch {
	case r.plan.Format == load.FormatBlocks:
		return "sha256 " + file.Mark, nil
	case file.Sum != "":
		return file.Sum, nil
	case r.sums.checksummer != nil:
		return r.sums.checksummer.Checksum(ctx, r.plan.DB, r.plan.Version, file)
	}
	if err := r.readInto(ctx, io.Discard, file, math.MaxInt64); err != nil {
		return "", err
	}
	return r.sums.sum(file), nil // the loader reads from Sums
}

// readInto reads at most a number of bytes of a file.
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

// outlineOf returns the part of a hash that is recorded as an outline.
func outlineOf(hash string) string { return hash[:min(len(hash), outlineDigits)] }
