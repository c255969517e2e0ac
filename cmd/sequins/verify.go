package main

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"sequins/internal/human"
	"sequins/internal/term"
)

func verifyCommand() *cobra.Command {
	var f fileFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify {FILE | DIR}...",
		Short: "Read blocks and data files and check every checksum",
		Long: `Read blocks, SequenceFiles, Sparkey logs, Avro and Parquet files from start to end
and check everything that their formats allow: in a block every checksum, the
order of the keys, the index and the filter; in the others lengths, sync markers,
compressed data, counts, and checksums where the writer made them. With the field
of the key, records whose key is null are errors, as in a load.

A DIR of this machine is searched recursively; it can be the local store of a
running sequins. A DIR that is a URL is that of a version, <source>/<db>/<version>;
the tables of --config for its source, such as [s3], hold, and without it,
credentials are those of the environment. Files that a load does not read are
skipped in a DIR: names that begin with _ or ., Sparkey indexes (.spi), index and
bloom of a MapFile, and other files of a local store. Any other file is bad, and
so are all of these if they are named as FILE. In a DIR with finished blocks they are compared with their manifest.` + fieldHelp + `

Prints each bad file with the offset. Exits with 6 if a file is damaged, 3 if a
file does not exist or there is nothing to verify, and 5 if the source does not
answer.`,
		Example: `  sequins verify /var/sequins
  sequins verify /srv/sequins/words/2026-01-31/part-r-0000*
  sequins verify --json s3://bucket/words/2026-01-31 | jq .bad`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.verify(cmd, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.register(cmd)
	return cmd
}

// verification is the result of sequins verify as JSON.
type verification struct {
	Good    bool      `json:"good"`
	Files   int64     `json:"files"`
	Records int64     `json:"records"`
	Bad     []badFile `json:"bad"`
}

type badFile struct {
	Path  string `json:"path"`
	Error string `json:"error"`
	Kind  string `json:"kind"` // the name of the exit code
}

func (f *fileFlags) verify(cmd *cobra.Command, args []string, asJSON bool) error {
	if err := f.load(args...); err != nil {
		return err
	}
	out, report := cmd.OutOrStdout(), cmd.ErrOrStderr()
	var all []dataFile
	var bytes int64
	var done atomic.Int64
	for _, arg := range args {
		all = append(all, f.expand(cmd.Context(), report, arg)...)
	}
	for _, d := range all {
		bytes += d.size
	}
	progress := term.NewProgress(report, "verifying", term.Bytes(func() (int64, int64) { return done.Load(), bytes }))
	result, code := verification{Bad: []badFile{}}, exitOK
	for _, d := range all {
		file, err := f.open(d)
		if d.found && codeOf(err) == exitAbsent {
			continue // it has gone since it was found
		}
		result.Files++
		if err == nil {
			var records int64
			records, err = file.Verify(cmd.Context(), func(n int64) { done.Add(n) })
			err = withCode(exitUnreadable, d.failed(errors.Join(err, file.Close()))) // it could be opened
			result.Records += records
		}
		if err == nil {
			continue
		}
		result.Bad, code = append(result.Bad, badFile{d.path, err.Error(), exitName(codeOf(err))}), max(code, codeOf(err))
		if !asJSON {
			progress.Print(func() { _, _ = fmt.Fprintln(report, "bad:", term.Clean(err.Error())) }) // the exit code reports the failure
		}
	}
	progress.Stop()
	var err error
	switch bad := len(result.Bad); {
	case bad > 0:
		err = coded{fmt.Errorf("%d of %d files are bad", bad, result.Files), code}
	case result.Files == 0:
		err = coded{errors.New("found no blocks and no data files"), exitAbsent}
	default:
		result.Good = true
	}
	if asJSON {
		return errors.Join(printJSON(out, result), err)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "good: %s with %s\n", human.Plural(int(result.Files), "file"), human.Plural(int(result.Records), "record"))
	}
	return err
}
