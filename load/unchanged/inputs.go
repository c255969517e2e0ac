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
const scheme = "sequins block 2\n"

const (
	// atOnce is how many checksums are asked for at a time, and how many beginnings of files are read.
	atOnce = 8
	// headSize is how much of a file is read to see whether hashing all of it may be of use. The headers of SequenceFiles and Avro
	// files, which have a random marker, fit.
	headSize = 4 << 10
	// outlineDigits is the length of store.Made.Outline.
	outlineDigits = 16
)

// facts are what is known of files, by name; "" of a file of which it cannot be known, which is final for this load.
type facts map[string]string

// distinct returns the files of partitions, each once.
func (r *Reuse) distinct(partitions []int) (files []source.File) {
	seen := make(map[string]bool)
	for _, p := range partitions {
		of := r.files[p]
		if len(of) > 0 && seen[of[0].Name] {
			continue // then the others, too
		}
		for _, f := range of {
			seen[f.Name] = true
		}
		files = append(files, of...)
	}
	return files
}

// learn asks for something of each file that is not known yet, workers at a time. The error is that of ctx.
func (known facts) learn(ctx context.Context, workers int, files []source.File, ask func(context.Context, source.File) (string, error)) error {
	answers := make([]string, len(files))
	err := parallel.Run(ctx, min(workers, len(files)), len(files), func(ctx context.Context, i int) error {
		if _, ok := known[files[i].Name]; !ok {
			answers[i], _ = ask(ctx, files[i]) // what is wrong with a file is an error of its load
		}
		return ctx.Err()
	})
	for i, f := range files {
		if _, ok := known[f.Name]; !ok {
			known[f.Name] = answers[i]
		}
	}
	return err
}

// head returns a hash of the beginning of a file that has to be read for its checksum.
func (r *Reuse) head(ctx context.Context, file source.File) (string, error) {
	if r.plan.Format == load.FormatBlocks || r.sums.checksummer != nil {
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

// hasher returns a function that returns the hash of the input of a partition as far as it is known; "" if one of its files is not. Of its
// name, only the columns in directories can be part of a block.
func (r *Reuse) hasher(known facts) func(p int) string {
	cache := make(map[*source.File]string) // by the first file: the files of all partitions are the same if they are not aligned
	hashFiles := func(files []source.File) string {
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
	return func(p int) string {
		files := "no files"
		if len(r.files[p]) > 0 {
			first, found := &r.files[p][0], false
			if files, found = cache[first]; !found {
				files = hashFiles(r.files[p])
				cache[first] = files
			}
		}
		if files == "" {
			return ""
		}
		h := sha256.New()
		fmt.Fprintf(h, "%s%d %s\n%d of %d %s\n", scheme, len(r.settings), r.settings, p, r.plan.Partitions, files)
		return hex.EncodeToString(h.Sum(nil))
	}
}

// outlineOf returns the part of a hash that is recorded as an outline.
func outlineOf(hash string) string { return hash[:min(len(hash), outlineDigits)] }
