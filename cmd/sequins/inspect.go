package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
)

func inspectCommand() *cobra.Command {
	var show int
	cmd := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "Show what is in a block, SequenceFile or Sparkey log",
		Long: `Show the content of files: the header, the number of records and bytes, the
partitioners that fit, and the first records.

SequenceFiles and Sparkey logs are read from start to end. The partitioner is
found from the keys, the number in the name of the file and the number of data
files in its directory, as in a load. Avro and Parquet files are not supported.`,
		Example: `  sequins inspect /srv/sequins/words/2026-01-31/part-r-00000
  sequins inspect --records 20 /var/sequins/data/words/2026-01-31/*.block`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if show < 0 {
				return usageError{fmt.Errorf("--records must not be negative")}
			}
			var failed error
			for _, path := range args {
				if err := inspect(cmd.OutOrStdout(), cmd.ErrOrStderr(), path, show); err != nil {
					failed = errors.Join(failed, err)
				}
			}
			return failed
		},
	}
	cmd.Flags().IntVar(&show, "records", 5, "number of records to show")
	return cmd
}

// description writes lines of names and values.
type description struct{ w *tabwriter.Writer }

// line adds a line. Errors of the writer are returned by Flush.
func (d *description) line(name, format string, args ...any) {
	_, _ = fmt.Fprintf(d.w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
}

func inspect(out, report io.Writer, path string, show int) (err error) {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d := &description{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	if _, err := fmt.Fprintf(out, "%s: %s\n", path, f.kind()); err != nil {
		return err
	}
	f.describe(d)
	p := newProgress(report, f.size())
	err = describeRecords(d, path, f, show, p)
	p.clear()
	if err != nil {
		return errors.Join(d.w.Flush(), err)
	}
	return d.w.Flush()
}

// sampleKeys is the number of keys of a block that are tested against the partitioners.
const sampleKeys = 10_000

// describeRecords reads the records: all of them if that is needed to count them, otherwise a sample.
func describeRecords(d *description, path string, f dataFile, show int, p *progress) error {
	index, n, known := place(path, f)
	detector := shard.NewDetector(max(n, 1))
	_, isBlock := f.(*blockFile)
	var shown [][2]string
	var records, deletes, keyBytes, valueBytes int64
	for (!isBlock || records < max(sampleKeys, int64(show))) && f.next() {
		if records++; records%1024 == 0 {
			p.add(f.consumed())
		}
		keyBytes += int64(len(f.key()))
		valueBytes += f.valueSize()
		if known && records <= sampleKeys {
			detector.Add(index, f.key())
		}
		if f.deleted() {
			deletes++
		}
		if len(shown) < show {
			line, err := showRecord(f)
			if err != nil {
				return err
			}
			shown = append(shown, line)
		}
	}
	if !isBlock {
		d.line("records", "%d", records)
		if deletes > 0 {
			d.line("deletes among them", "%d", deletes)
		}
		d.line("bytes of keys", "%d", keyBytes)
		d.line("bytes of values", "%d", valueBytes)
	}
	if why := unloadable(path); isSparkey(f) && why != "" {
		d.line("cannot be loaded", "%s", escape([]byte(why)))
	}
	if known && records > 0 {
		d.line("partitioner", "%s", partitionerGuess(detector, index, n))
	}
	for i, line := range shown {
		d.line(fmt.Sprintf("record %d", i), "%s\t%s", line[0], line[1])
	}
	return f.err()
}

func showRecord(f dataFile) ([2]string, error) {
	key := excerpt(f.key(), int64(len(f.key())))
	if f.deleted() {
		return [2]string{key, "(deleted)"}, nil
	}
	var value headBuffer
	err := f.writeValue(&value)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return [2]string{key, excerpt(value.Bytes(), f.valueSize())}, err
}

// headBuffer keeps the first bytes written to it, and then returns an error to stop the writer.
type headBuffer struct{ bytes.Buffer }

var errEnough = errors.New("enough")

func (h *headBuffer) Write(p []byte) (int, error) {
	const enough = 1 << 10
	n, _ := h.Buffer.Write(p[:min(len(p), enough)])
	if h.Len() >= enough {
		return n, errEnough
	}
	return n, nil
}

// place returns the partition of a file and the number of partitions, as a load determines them: a
// block contains them; for other files they are the number in the name, or the position among the data
// files of the directory.
func place(path string, f dataFile) (index, n int, known bool) {
	if b, ok := f.(*blockFile); ok {
		p := b.r.Properties()
		return p.Partition, p.Partitions, p.Partitions > 0
	}
	name, dir := filepath.Base(path), filepath.Dir(path)
	if name == "data" { // of a MapFile
		name, dir = filepath.Base(dir), filepath.Dir(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, false
	}
	var names []string // ReadDir sorts them
	for _, e := range entries {
		if !source.Hidden(e.Name()) && load.IsLog(e.Name()) == load.IsLog(name) && !load.IsLogIndex(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if isSparkey(f) {
		return placeLog(name, names)
	}
	index, n = shard.FileIndex(name, slices.Index(names, name)), len(names)
	return index, n, index >= 0 && index < n
}

func isSparkey(f dataFile) bool {
	s, ok := f.(*scannedFile)
	if !ok {
		return false
	}
	_, ok = s.scanner.(*sparkey.Reader)
	return ok
}

// placeLog is place for a Sparkey log: a partition can have several logs, or none.
func placeLog(name string, names []string) (index, n int, known bool) {
	if !load.IsLog(name) {
		return 0, 0, false
	}
	for _, other := range names {
		part, err := load.LogPartition(other)
		if err != nil {
			return 0, 0, false
		}
		n = max(n, part+1)
		if other == name {
			index = part
		}
	}
	return index, n, true
}

// unloadable returns the reason why a version with a Sparkey log of this name cannot be loaded, or "".
func unloadable(path string) string {
	name := filepath.Base(path)
	if !load.IsLog(name) {
		return "a load takes only files named *.spl for Sparkey logs"
	}
	if _, err := load.LogPartition(name); err != nil {
		return err.Error()
	}
	return ""
}

func partitionerGuess(detector *shard.Detector, index, n int) string {
	at := fmt.Sprintf("file %d of %d", index, n)
	if n == 1 {
		return "any, as it is the only file"
	}
	var names []string
	for _, p := range detector.Candidates() {
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return "none fits it as " + at + "; keys are cut by " + shard.String.String()
	}
	return strings.Join(names, " or ") + ", as " + at
}

func (b *blockFile) describe(d *description) {
	p := b.r.Properties()
	d.line("partition", "%d of %d", p.Partition, p.Partitions)
	d.line("records", "%d", p.Records)
	d.line("bytes of records", "%d", p.RawBytes)
	d.line("bytes on disk", "%d", b.r.Size())
	d.line("pages", "%d of %d bytes", p.Pages, p.BlockSize)
	d.line("compression", "%s", p.Compression)
	d.line("first key", "%s", excerpt(p.FirstKey, int64(len(p.FirstKey))))
	d.line("last key", "%s", excerpt(p.LastKey, int64(len(p.LastKey))))
	d.line("content hash", "%s", p.ContentHash)
}

func (s *scannedFile) describe(d *description) {
	switch r := s.scanner.(type) {
	case *sequencefile.Reader:
		describeSequenceFile(d, r.Header())
	case *sparkey.Reader:
		describeSparkey(d, r.Header())
	}
}

func describeSequenceFile(d *description, h sequencefile.Header) {
	d.line("format version", "%d", h.Version)
	d.line("key class", "%s", escape([]byte(h.KeyClass)))
	d.line("value class", "%s", escape([]byte(h.ValueClass)))
	d.line("compression", "%s", h.Compression)
	if h.Codec != "" {
		d.line("codec", "%s", escape([]byte(h.Codec)))
	}
	for _, name := range sortedKeys(h.Metadata) {
		d.line("metadata", "%s = %s", escape([]byte(name)), excerpt([]byte(h.Metadata[name]), int64(len(h.Metadata[name]))))
	}
}

func describeSparkey(d *description, h sparkey.Header) {
	d.line("format version", "%d.%d", h.Major, h.Minor)
	d.line("compression", "%s", h.Compression)
	if h.Compression != sparkey.None {
		d.line("compression block", "%d bytes", h.BlockSize)
	}
	d.line("longest key", "%d bytes", h.MaxKeyLen)
	d.line("longest value", "%d bytes", h.MaxValueLen)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
