package unchanged

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

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
)

// inputs are the inputs of the partitions of a plan.
type inputs struct {
	src      source.Source
	sums     *Sums
	plan     *load.Plan
	read     source.ReadOptions
	settings string
	columns  bool // of directories are part of the values
	files    [][]source.File

	// By name of a file; "" if it has none, which is final for this load.
	heads, checksums map[string]string
	// Of the files of a partition, by its first one: the files of all partitions are the same if they are not aligned.
	outlines, contents map[*source.File]string
}

// distinct returns the files of partitions, each once.
func (in *inputs) distinct(partitions []int) (files []source.File) {
	seen := make(map[string]bool)
	for _, p := range partitions {
		of := in.files[p]
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

// learn asks for something of each file that is not in known yet, workers at a time. Files of which it cannot be known get "". The error is
// that of ctx.
func learn(ctx context.Context, workers int, files []source.File, known map[string]string, ask func(context.Context, source.File) (string, error)) error {
	answers := make([]string, len(files))
	err := parallel.Run(ctx, min(workers, len(files)), len(files), func(ctx context.Context, i int) error {
		if _, ok := known[files[i].Name]; ok {
			return nil
		}
		answers[i], _ = ask(ctx, files[i]) // what is wrong with a file is an error of its load
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
func (in *inputs) head(ctx context.Context, file source.File) (string, error) {
	if in.plan.Format == load.FormatBlocks || in.sums.checksummer != nil {
		return "none", nil
	}
	f, err := in.src.Open(ctx, in.plan.DB, in.plan.Version, file, in.read)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.CopyN(h, f, headSize)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checksum returns the checksum of a file, and reads the file if it has to.
func (in *inputs) checksum(ctx context.Context, file source.File) (string, error) {
	switch {
	case in.plan.Format == load.FormatBlocks:
		return "sha256 " + file.Mark, nil
	case in.sums.checksummer != nil:
		return in.sums.checksummer.Checksum(ctx, in.plan.DB, in.plan.Version, file)
	}
	f, err := in.src.Open(ctx, in.plan.DB, in.plan.Version, file, in.read)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return in.sums.sum(file), nil // Sums is below src
}

// outline returns a hash of what is known of the input of a partition without reading its files; "" if that is not known.
func (in *inputs) outline(p int) string {
	of := in.of(p, in.heads, in.outlines)
	if of == "" {
		return ""
	}
	return in.hash(p, of)[:16]
}

// identity returns the hash of the input of a partition; "" if the checksum of a file is not known.
func (in *inputs) identity(p int) string {
	of := in.of(p, in.checksums, in.contents)
	if of == "" {
		return ""
	}
	return in.hash(p, of)
}

func (in *inputs) hash(p int, files string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s%d %s\n%d of %d %s\n", scheme, len(in.settings), in.settings, p, in.plan.Partitions, files)
	return hex.EncodeToString(h.Sum(nil))
}

// of returns a hash of the files of a partition with what is known of each.
func (in *inputs) of(p int, known map[string]string, cache map[*source.File]string) string {
	if len(in.files[p]) == 0 {
		return "no files"
	}
	first := &in.files[p][0]
	all, found := cache[first]
	if !found {
		all = in.hashOf(in.files[p], known)
		cache[first] = all
	}
	return all
}

func (in *inputs) hashOf(files []source.File, known map[string]string) string {
	h := sha256.New()
	for _, f := range files {
		if known[f.Name] == "" {
			return ""
		}
		in.add(h, f, known[f.Name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// add adds a file to a hash. Of its name, only the columns in directories can be part of a block.
func (in *inputs) add(h hash.Hash, f source.File, known string) {
	fmt.Fprintf(h, "%d %q", f.Size, known)
	if in.columns {
		fmt.Fprintf(h, " %q", fmt.Sprintf("%#v", source.Columns(f.Name)))
	}
	fmt.Fprintln(h)
}
