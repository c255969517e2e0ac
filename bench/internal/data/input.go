package data

import (
	"fmt"
	"os"
	"path/filepath"

	"sequins/internal/content"
	"sequins/shard"
	"sequins/test/sequencefiles"
)

// Input is a source directory with one version of one database: SequenceFiles as a job leaves them, one a
// partition.
type Input struct {
	Spec   Spec
	Files  int
	Format string // a key of Formats
	Sorted bool   // or in the order of the records' numbers, which is random for hex keys
}

// The names that an Input's database and version have.
const (
	DB      = "bench"
	Version = "1"
)

// Content is a content of Version, for nodes that are given their blocks.
var Content = content.Content{Input: content.Input{Name: Version, Hash: content.Sum("files")}, Division: content.Sum("division")}

// Formats are how the SequenceFiles of an Input can be compressed.
var Formats = map[string]sequencefiles.WriterOptions{
	"plain":        {},
	"BLOCK snappy": {Compression: sequencefiles.Block, Codec: "org.apache.hadoop.io.compress.SnappyCodec"},
	"BLOCK zlib":   {Compression: sequencefiles.Block},
	"RECORD zlib":  {Compression: sequencefiles.Record},
}

// String names the input, for files and tables.
func (in Input) String() string {
	order := "unsorted"
	if in.Sorted {
		order = "sorted"
	}
	return in.Format + " " + order
}

// Build writes the files, unless they are there, and returns the source directory.
func (in Input) Build(c *Cache) (string, error) {
	name := fmt.Sprintf("%v %d files %v", in.Spec, in.Files, in)
	return c.Get(name, in.Spec.Size()*6/5+1<<20, func(path string) error {
		dir := filepath.Join(path, DB, Version)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		files := make([]*output, in.Files)
		for i := range files {
			f, err := create(filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)), Formats[in.Format])
			if err != nil {
				return err
			}
			defer f.file.Close()
			files[i] = f
		}
		if err := in.each(func(key, value []byte) error {
			return files[shard.String.Partition(key, in.Files)].w.Append(key, value)
		}); err != nil {
			return err
		}
		for _, f := range files {
			if err := f.finish(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Publish makes dir a version of hard links to the files at input, all at once.
func Publish(input, dir string) error {
	files, err := Files(input)
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(dir), "_next")
	if err := os.MkdirAll(next, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Link(f, filepath.Join(next, filepath.Base(f))); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(next, "_SUCCESS"), nil, 0o644); err != nil { // or a node looks twice, some seconds apart
		return err
	}
	return os.Rename(next, dir)
}

func (in Input) each(do func(key, value []byte) error) error {
	if in.Sorted {
		return in.Spec.Each(do)
	}
	var key, value []byte
	for i := range in.Spec.Records {
		key, value = in.Spec.Key(key[:0], i), in.Spec.Value(value[:0], i)
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

// output is one file being written.
type output struct {
	file *os.File
	w    *sequencefiles.Writer
}

func create(path string, o sequencefiles.WriterOptions) (*output, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	o.SyncSeed = filepath.Base(path)
	w, err := sequencefiles.NewWriter(f, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &output{f, w}, nil
}

func (o *output) finish() error {
	if err := o.w.Close(); err != nil {
		return err
	}
	return o.file.Sync()
}
