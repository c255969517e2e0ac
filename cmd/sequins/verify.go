package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sequins/input/finished"
	"sequins/internal/term"
	"sequins/source"
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
and so are all of these if they are named as FILE. Finished blocks in a DIR are
also compared with their manifest, _BLOCKS.json.` + fileHelp + `

Prints each bad file with the offset. Exits with 6 if a file is damaged, 3 if a
file does not exist, also one of a manifest, or there is nothing to verify, and 5 if the source does not
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
	manifests   []dataFile // of finished blocks
	progress    *term.Progress
	result      verification
	failed      []error
}

func verify(cmd *cobra.Command, open *files, args []string, asJSON bool) error {
	v := verifier{files: open, out: cmd.OutOrStdout(), report: cmd.ErrOrStderr(), json: asJSON, result: verification{Bad: []badFile{}}}
	for _, arg := range args {
		for _, d := range v.expand(arg) {
			switch {
			case d.err != nil:
				v.result.Files++
				v.complain(d.path, d.failed(d.err))
			case d.isManifest():
				v.manifests = append(v.manifests, d)
			default:
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
	for _, m := range v.manifests {
		v.result.Files++
		if err := v.verifyFinished(m); err != nil {
			v.complain(m.path, err)
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
	if len(v.manifests) > 0 {
		total *= 2 // blocks are read again for their hashes
	}
	return total
}

// file verifies a file. One that was found in a directory of this machine may have gone.
func (v *verifier) file(d dataFile) error {
	f, err := v.openFile(d)
	if d.found && !d.remote && errors.Is(err, fs.ErrNotExist) {
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
		red := term.NewConsole(v.report).Paint(term.Red, "bad:")
		v.progress.Print(func() { _, _ = fmt.Fprintln(v.report, red, term.Clean(err.Error())) })
	}
}

// verifyFinished compares the blocks beside a manifest of finished blocks with it: their names, sizes and hashes. It does not if one of them
// was reported as bad. The error is that of the manifest.
func (v *verifier) verifyFinished(at dataFile) error {
	f, err := at.open(0)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, finished.MaxSize+1)) // Parse refuses a longer one
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	m, err := finished.Parse(data, at.path)
	if err != nil {
		return ofFile(err, false)
	}
	var listed []source.File
	blocks := make(map[string]dataFile)
	dir, _ := path.Split(at.path)
	for _, d := range v.queue {
		name, beside := strings.CutPrefix(d.path, dir)
		if !beside || strings.Contains(name, "/") || !strings.HasSuffix(name, source.BlockSuffix) {
			continue
		}
		if slices.ContainsFunc(v.result.Bad, func(b badFile) bool { return b.Path == d.path }) {
			return nil
		}
		blocks[name], listed = d, append(listed, source.File{Name: name, Size: d.size})
	}
	if err := m.Match(listed); err != nil {
		return ofFile(fmt.Errorf("%s%w", dir, err), false)
	}
	for _, b := range m.Blocks {
		d := blocks[b.Name]
		if err := v.verifyHash(d, b.SHA256); err != nil {
			v.complain(d.path, d.failed(err))
		}
	}
	return nil
}

// verifyHash compares the SHA-256 of a file with the one of the manifest.
func (v *verifier) verifyHash(d dataFile, want string) error {
	f, err := d.open(0)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(&counted{hash, v.progress}, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if sum := fmt.Sprintf("%x", hash.Sum(nil)); sum != want {
		return fmt.Errorf("%s: %w: its SHA-256 is %s, and %s in %s", d.path, finished.ErrCorrupt, sum, want, source.BlocksFile)
	}
	return nil
}
