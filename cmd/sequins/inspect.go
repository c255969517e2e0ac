package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sequins/datafile"
	"sequins/shard"
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
				failed = errors.Join(failed, inspect(cmd.OutOrStdout(), cmd.ErrOrStderr(), path, show))
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
	f, err := datafile.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d := &description{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	if _, err := fmt.Fprintf(out, "%s: %s\n", path, f.Kind()); err != nil {
		return err
	}
	for _, p := range f.Describe() {
		d.line(p.Name, "%s%s", plain(p.Value), excerpt(p.Data, int64(len(p.Data))))
	}
	p := newProgress(report, f.Size())
	err = describeRecords(d, f, show, p)
	p.clear()
	return errors.Join(d.w.Flush(), err)
}

// sampleKeys is the number of keys of a block that are tested against the partitioners.
const sampleKeys = 10_000

// describeRecords reads the records: all of them if that is needed to count them, otherwise a sample.
func describeRecords(d *description, f datafile.File, show int, p *progress) error {
	index, n, known := f.Place()
	detector := shard.NewDetector(max(n, 1), 1, 0, shard.AnyNames)
	isBlock := f.Kind() == datafile.Block // its header has the numbers
	var shown []string
	var records, deletes, keyBytes, valueBytes int64
	for (!isBlock || records < max(sampleKeys, int64(show))) && f.Next() {
		if records++; records%1024 == 0 {
			p.add(f.Consumed())
		}
		keyBytes += int64(len(f.Key()))
		valueBytes += f.ValueSize()
		if known && records <= sampleKeys {
			detector.Add(index, f.Key())
		}
		if f.Deleted() {
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
	if why := f.Unloadable(); why != "" {
		d.line("cannot be loaded", "%s", plain(why))
	}
	if known && records > 0 {
		d.line("partitioner", "%s", partitionerGuess(detector, index, n))
	}
	for i, line := range shown {
		d.line(fmt.Sprintf("record %d", i), "%s", line)
	}
	return f.Err()
}

func showRecord(f datafile.File) (string, error) {
	key := excerpt(f.Key(), int64(len(f.Key())))
	if f.Deleted() {
		return key + "\t(deleted)", nil
	}
	var value headBuffer
	err := f.WriteValue(&value)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return key + "\t" + excerpt(value.Bytes(), f.ValueSize()), err
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

func partitionerGuess(detector *shard.Detector, index, n int) string {
	at := fmt.Sprintf("file %d of %d", index, n)
	if n == 1 {
		return "any, as it is the only file"
	}
	var names []string
	for _, cut := range detector.Candidates() {
		names = append(names, cut.By.String())
	}
	if len(names) == 0 {
		return "none fits it as " + at + "; keys are cut by " + shard.String.String()
	}
	return strings.Join(names, " or ") + ", as " + at
}
