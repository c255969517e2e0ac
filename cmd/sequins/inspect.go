package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sequins/internal/term"
	"sequins/shard"
)

func inspectCommand() *cobra.Command {
	var f fileFlags
	var show int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect {FILE | DIR}...",
		Short: "Show what is in files, or in all files of a version",
		Long: `Show the content of blocks, SequenceFiles, Sparkey logs, Avro and Parquet files:
the header, the number of records and bytes, the partitioners that fit, and the
first records. DIR is the directory of a version, <source>/<db>/<version>, and
means all of its data files.

Files are read from start to end, except blocks. The partitioner is found from the
keys, the number in the name of the file and the number of data files of its
version, as in a load.` + fileHelp + `

Exits with 3 if a file does not exist or a directory has no data files, 5 if the
source does not answer, and 6 if a file cannot be read.`,
		Example: `  sequins inspect /srv/sequins/words/2026-01-31/part-r-00000
  sequins inspect --records 20 /var/sequins/data/words/2026-01-31/*/*.block
  sequins inspect --json --key word s3://bucket/words/2026-01-31`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if show < 0 {
				return usageError(fmt.Errorf("--records must not be negative"))
			}
			return f.files(cmd, func(open *files) error { return inspectAll(cmd, open, args, show, asJSON) })
		},
	}
	cmd.Flags().IntVar(&show, "records", 5, "number of records to show")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.register(cmd)
	return cmd
}

// inspection is the result of sequins inspect for one file as JSON.
type inspection struct {
	Path   string         `json:"path"`
	Kind   fileKind       `json:"kind,omitempty"`
	Bytes  int64          `json:"bytes"`
	Header map[string]any `json:"header,omitempty"`
	// Records and what follows are of the whole file, of a block from its header.
	Records    *int64 `json:"records,omitempty"`
	Deletes    int64  `json:"deletes,omitempty"`
	NullKeys   int64  `json:"null_keys,omitempty"`
	KeyBytes   *int64 `json:"key_bytes,omitempty"`
	ValueBytes *int64 `json:"value_bytes,omitempty"`
	// Partition is the number of the file of Partitions, and Partitioners are the functions that fit its keys.
	Partition    *int     `json:"partition,omitempty"`
	Partitions   int      `json:"partitions,omitempty"`
	Partitioners []string `json:"partitioners,omitempty"`
	Sample       []sample `json:"sample,omitempty"`
	Error        string   `json:"error,omitempty"`

	shown []property // the header and the totals, for people
}

// sample is a record that is shown.
type sample struct {
	keyValue
	ValueBytes int64 `json:"value_bytes"` // of the whole value, of which maybe only the beginning is shown

	key, value []byte // the beginning of the value
}

// inspectAll inspects files and the files of versions.
func inspectAll(cmd *cobra.Command, open *files, args []string, show int, asJSON bool) (err error) {
	out, failed := cmd.OutOrStdout(), []error(nil)
	result := []*inspection{}
	one := func(d dataFile) {
		i := &inspection{Path: d.path}
		err := inspect(cmd, open, d, show, i)
		if err != nil {
			i.Error = err.Error()
			failed = append(failed, err)
		}
		if result = append(result, i); !asJSON && i.Kind != "" {
			failed = append(failed, i.print(out))
		}
	}
	for _, arg := range args {
		found := open.expand(arg)
		for _, d := range found {
			one(d)
		}
		if len(found) == 0 {
			one(dataFile{path: arg, err: withCode(exitAbsent, fmt.Errorf("%s: there are no data files in this directory", arg))})
		}
	}
	if asJSON {
		err = printJSON(out, map[string]any{"files": result})
		for i := range failed {
			failed[i] = inResult{failed[i]}
		}
	}
	return errors.Join(append(failed, err)...)
}

// inspect inspects a file.
func inspect(cmd *cobra.Command, open *files, d dataFile, show int, i *inspection) (err error) {
	f, err := open.openFile(d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	i.Kind, i.Bytes, i.shown = f.Kind(), d.size, f.Describe()
	i.Header = headerOf(i.shown)
	p := term.NewProgress(cmd.ErrOrStderr(), "reading "+d.path, d.size)
	err = i.records(f, show, p)
	p.Stop()
	return d.failed(err)
}

// headerOf returns a header for JSON.
func headerOf(properties []property) map[string]any {
	header := make(map[string]any)
	for _, p := range properties {
		if data, isBytes := p.Value.([]byte); isBytes {
			p.Value = string(data)
		}
		header[strings.ReplaceAll(p.Name, " ", "_")] = p.Value
	}
	return header
}

// sampleKeys is the number of keys of a block that are tested against the partitioners.
const sampleKeys = 10_000

// records reads the records: all of them if that is needed to count them, otherwise a sample.
func (i *inspection) records(f openData, show int, p *term.Progress) error {
	index, n, known := f.Place()
	detector := shard.NewDetector(max(n, 1), 1, 0, shard.AnyNames)
	isBlock := f.Kind() == kindBlock // its header has the numbers
	var records, keyBytes, valueBytes int64
	for (!isBlock || records < max(sampleKeys, int64(show))) && f.Next() {
		if records++; records%1024 == 0 {
			p.Add(f.Consumed())
		}
		keyBytes += int64(len(f.Key()))
		valueBytes += f.ValueSize()
		if known && records <= sampleKeys {
			detector.Add(index, f.Key())
		}
		if f.Deleted() {
			i.Deletes++
		}
		if len(i.Sample) < show {
			if err := i.sample(f); err != nil {
				return err
			}
		}
	}
	if i.NullKeys = f.NullKeys(); !isBlock {
		i.Records, i.KeyBytes, i.ValueBytes = &records, &keyBytes, &valueBytes
		i.shown = append(i.shown, property{"records", records})
		if i.Deletes > 0 {
			i.shown = append(i.shown, property{"deletes among them", i.Deletes})
		}
		if i.NullKeys > 0 {
			i.shown = append(i.shown, property{"left out, as the key is null", i.NullKeys})
		}
		i.shown = append(i.shown, property{"bytes of keys", keyBytes}, property{"bytes of values", valueBytes})
	}
	if known && records > 0 && !f.Keyless() {
		i.Partition, i.Partitions = &index, n
		for _, cut := range detector.Candidates() {
			i.Partitioners = append(i.Partitioners, cut.By.String())
		}
	}
	return f.Err()
}

// maxSample is the number of bytes of a value that are shown.
const maxSample = 1 << 10

// sample adds the current record to those that are shown.
func (i *inspection) sample(f openData) error {
	s := sample{key: bytes.Clone(f.Key()), keyValue: keyValue{Deleted: f.Deleted()}}
	s.Key, s.KeyBase64 = textOrBytes(s.key)
	if !s.Deleted {
		value := f.OpenValue()
		head, err := io.ReadAll(io.LimitReader(value, maxSample))
		if err := errors.Join(err, value.Close()); err != nil {
			return err
		}
		s.value, s.ValueBytes = head, f.ValueSize()
		shown := s.value
		for n := 1; n < utf8.UTFMax && int64(len(s.value)) < s.ValueBytes && !utf8.Valid(shown); n++ { // a character may be cut off
			shown = s.value[:len(s.value)-n]
		}
		if s.Value, s.ValueBase64 = textOrBytes(shown); s.Value == nil {
			s.ValueBase64 = s.value
		}
	}
	i.Sample = append(i.Sample, s)
	return nil
}

// print prints an inspection for people.
func (i *inspection) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { // errors are returned by Flush
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if _, err := fmt.Fprintf(out, "%s: %s\n", term.Escape([]byte(i.Path)), i.Kind); err != nil {
		return err
	}
	for _, p := range i.shown {
		switch v := p.Value.(type) {
		case []byte:
			line(p.Name, "%s", term.Excerpt(v, int64(len(v))))
		case map[string]string:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				line(p.Name, "%s = %s", term.Clean(name), term.Excerpt([]byte(v[name]), int64(len(v[name]))))
			}
		default:
			line(p.Name, "%s", term.Clean(fmt.Sprint(v)))
		}
	}
	if i.Partition != nil {
		line("partitioner", "%s", i.partitionerGuess())
	}
	for n, s := range i.Sample {
		line(fmt.Sprintf("record %d", n), "%s", s)
	}
	return w.Flush()
}

// String returns a record for a line.
func (s sample) String() string {
	key := term.Excerpt(s.key, int64(len(s.key)))
	if s.Deleted {
		return key + "\t(deleted)"
	}
	return key + "\t" + term.Excerpt(s.value, s.ValueBytes)
}

func (i *inspection) partitionerGuess() string {
	at := fmt.Sprintf("file %d of %d", *i.Partition, i.Partitions)
	switch {
	case i.Partitions == 1:
		return "any, as it is the only file"
	case len(i.Partitioners) == 0:
		return "none fits it as " + at + "; keys are cut by " + shard.String.String()
	}
	return strings.Join(i.Partitioners, " or ") + ", as " + at
}
