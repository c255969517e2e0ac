package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sequins/internal/term"
)

func inspectCommand() *cobra.Command {
	var f fileFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect {FILE | DIR}...",
		Short: "Show what files are, or all files of a version",
		Long: `Show what the headers of blocks, SequenceFiles, Sparkey logs, Avro and Parquet
files say: the classes or fields of the records, the compression, and, where the
format has them, numbers of records. DIR is the directory of a version,
<source>/<db>/<version>, and means all of its data files. Records are printed by
cat, and counted and checked by verify.` + fileHelp + `

Exits with 3 if a file does not exist or a directory has no data files, 5 if the
source does not answer, and 6 if a file cannot be read.`,
		Example: `  sequins inspect /srv/sequins/words/2026-01-31/part-r-00000
  sequins inspect /var/sequins/data/words/2026-01-31/*/*.block
  sequins inspect --json s3://bucket/words/2026-01-31`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.files(cmd, args, func(open *files) error { return inspectAll(cmd.OutOrStdout(), open, args, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.register(cmd)
	return cmd
}

// inspection is the result of sequins inspect for one file as JSON.
type inspection struct {
	Path   string         `json:"path"`
	Format string         `json:"format,omitempty"`
	Bytes  int64          `json:"bytes"`
	Header map[string]any `json:"header,omitempty"`
	Error  string         `json:"error,omitempty"`
}

// inspectAll inspects files and the files of versions.
func inspectAll(out io.Writer, open *files, args []string, asJSON bool) error {
	var failed error
	result := []inspection{}
	for _, arg := range args {
		found := open.expand(arg)
		if len(found) == 0 {
			found = []dataFile{{path: arg, err: withCode(exitAbsent, fmt.Errorf("%s: there are no data files in this directory", arg))}}
		}
		for _, d := range found {
			i := inspection{Path: d.path, Bytes: d.size}
			format, header, err := open.header(d)
			switch {
			case err != nil:
				i.Error = err.Error()
			case asJSON:
				i.Format, i.Header = format, header
			default:
				err = printHeader(out, d.path, format, header)
			}
			failed, result = errors.Join(failed, err), append(result, i)
		}
	}
	if !asJSON {
		return failed
	}
	return errors.Join(printJSON(out, map[string]any{"files": result}), failed)
}

// header returns what can be known of a file without reading its records.
func (f *files) header(d dataFile) (format string, header map[string]any, err error) {
	file, format, err := f.openFile(d)
	if err != nil {
		return "", nil, err
	}
	header = file.Header()
	return format, header, file.Close()
}

// printHeader prints a header for people.
func printHeader(out io.Writer, path, format string, header map[string]any) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintf(out, "%s: %s\n", term.Escape([]byte(path)), format); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		switch v := header[name].(type) {
		case map[string]string:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				_, _ = fmt.Fprintf(w, "  %s\t%s = %s\n", name, term.Escape([]byte(key)), term.Excerpt([]byte(v[key]), int64(len(v[key])))) // errors are returned by Flush
			}
		default:
			_, _ = fmt.Fprintf(w, "  %s\t%s\n", name, term.Escape([]byte(fmt.Sprint(v))))
		}
	}
	return w.Flush()
}
