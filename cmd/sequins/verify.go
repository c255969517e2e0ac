package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

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
running sequins. Another DIR is that of a version, <source>/<db>/<version>. Files
that a load does not read are skipped in a DIR: names that begin with _ or .,
Sparkey indexes (.spi), and other files of a local store. Any other file is bad,
and so are all of these if they are named as FILE. Whether all finished blocks are
there is shown by versions.` + fileHelp + `

Prints each bad file with the offset. Exits with 6 if a file is damaged, 3 if a
file does not exist or there is nothing to verify, and 5 if the source does not
answer.`,
		Example: `  sequins verify /var/sequins
  sequins verify /srv/sequins/words/2026-01-31/part-r-0000*
  sequins verify --json s3://bucket/words/2026-01-31 | jq .bad`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.files(cmd, func(open *files) error { return verify(cmd, open, args, asJSON) })
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

// badFile is a file that is not good.
type badFile struct {
	Path  string `json:"path"`
	Error string `json:"error"`
	Kind  string `json:"kind"` // the name of the exit code
}

// verifier finds files, reads them, and collects the results.
type verifier struct {
	*files
	out, report io.Writer
	json        bool
	queue       []dataFile
	progress    *term.Progress
	result      verification
	failed      []error
}

func verify(cmd *cobra.Command, open *files, args []string, asJSON bool) error {
	v := verifier{files: open, out: cmd.OutOrStdout(), report: cmd.ErrOrStderr(), json: asJSON, result: verification{Bad: []badFile{}}}
	for _, arg := range args {
		for _, d := range v.expand(arg) {
			if d.err != nil {
				v.result.Files++
				v.complain(d.path, d.err)
			} else {
				v.queue = append(v.queue, d)
			}
		}
	}
	v.progress = term.NewProgress(v.report, "verifying", v.size())
	for _, d := range v.queue {
		if err := v.file(d); err != nil {
			v.complain(d.path, err)
		}
	}
	v.progress.Stop()
	return v.conclude()
}

// conclude prints the result, and returns an error unless it is good.
func (v *verifier) conclude() error {
	var err error
	switch bad := len(v.result.Bad); {
	case bad > 0:
		err = coded{fmt.Errorf("%d of %d files are bad", bad, v.result.Files), v.code()}
	case v.result.Files == 0:
		err = coded{errors.New("found no blocks and no data files"), exitAbsent}
	default:
		v.result.Good = true
	}
	if v.json {
		if err != nil {
			err = inResult{err}
		}
		return errors.Join(printJSON(v.out, v.result), err)
	}
	if err == nil {
		_, err = fmt.Fprintf(v.out, "%d files with %d records are good\n", v.result.Files, v.result.Records)
	}
	return err
}

// code returns the exit code for the bad files: damage prevails.
func (v *verifier) code() int {
	for _, err := range v.failed {
		if codeOf(err) == exitUnreadable {
			return exitUnreadable
		}
	}
	return codeOfAll(v.failed)
}

// size returns the size of all queued files, in bytes.
func (v *verifier) size() (total int64) {
	for _, d := range v.queue {
		total += d.size
	}
	return total
}

// file verifies a file. One that was found in a directory of this machine may have gone.
func (v *verifier) file(d dataFile) error {
	f, err := v.openFile(d)
	if d.found && !d.remote && codeOf(err) == exitAbsent {
		return nil
	}
	v.result.Files++
	if err != nil {
		return err
	}
	records, err := f.Verify(v.ctx, v.progress.Add)
	v.result.Records += records
	return withCode(exitUnreadable, d.failed(errors.Join(err, f.Close()))) // it could be opened
}

// complain reports a bad file. Errors of writing are ignored; the exit code reports the failure.
func (v *verifier) complain(path string, err error) {
	v.result.Bad = append(v.result.Bad, badFile{path, err.Error(), exitName(codeOf(err))})
	v.failed = append(v.failed, err)
	if !v.json {
		v.progress.Print(func() { _, _ = fmt.Fprintln(v.report, "bad:", term.Clean(err.Error())) })
	}
}
