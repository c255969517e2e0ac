package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sequins/datafile"
	"sequins/source"
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR|FILE...",
		Short: "Read blocks and data files and check every checksum",
		Long: `Read blocks, SequenceFiles and Sparkey logs from start to end and check
everything that their formats allow: in a block every checksum, the order of the
keys, the index and the filter; in the others lengths, sync markers, compressed
data and counts.

A DIR is searched recursively; it can be the local store of a running sequins.
Files without records are skipped in a DIR: names that begin with _ or ., Hadoop
checksums (.crc), Sparkey indexes (.spi), and other files of a local store. Avro
and Parquet files in a DIR are counted and not checked. Any other file is bad,
and so are all of these if they are named as FILE. Finished blocks in a DIR are
also compared with their manifest, _BLOCKS.json.

Prints each bad file with the offset, and exits with 1 if there is one, or if
there was nothing to verify. Progress is a bar on a terminal, and otherwise a
line every ten seconds, both on standard error.`,
		Example: `  sequins verify /var/sequins
  sequins verify /srv/sequins/words/2026-01-31/part-r-0000*`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
}

// verifier finds files, reads them, and counts the results.
type verifier struct {
	report              io.Writer // for errors
	queue               []verifiable
	manifests           []string // of finished blocks
	progress            *progress
	files, records, bad int64
	unchecked           int64 // Avro and Parquet files in directories
}

// verifiable is a file to verify.
type verifiable struct {
	path string
	// found reports whether the file was found in a directory and not named. If the directory belongs
	// to a running sequins, it may remove the file meanwhile.
	found bool
}

func verify(ctx context.Context, out, report io.Writer, paths []string) error {
	v := verifier{report: report}
	for _, path := range paths {
		if err := v.find(path); err != nil {
			v.files++
			v.complain(err)
		}
	}
	v.progress = newProgress(report, v.size())
	for _, file := range v.queue {
		err := v.file(ctx, file)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.complain(err)
		}
	}
	for _, path := range v.manifests {
		err := v.verifyFinished(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if v.files++; err != nil {
			v.complain(err)
		}
	}
	v.progress.clear()
	switch {
	case v.bad > 0:
		return fmt.Errorf("%d of %d files are bad", v.bad, v.files)
	case v.files == 0:
		return errors.New("found no blocks and no data files")
	}
	if v.unchecked > 0 {
		if _, err := fmt.Fprintf(out, "%d files of Avro and Parquet are not checked\n", v.unchecked); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d files with %d records are good\n", v.files, v.records)
	return err
}

// find queues a named file, or the files in a named directory.
func (v *verifier) find(path string) error {
	if info, _ := os.Stat(path); info == nil || !info.IsDir() {
		v.queue = append(v.queue, verifiable{path: path})
		return nil
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			v.files++
			v.complain(err)
			return nil
		case file != root && source.Hidden(entry.Name()):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			if entry.Name() == source.BlocksFile {
				v.manifests = append(v.manifests, file)
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		v.found(file)
		return nil
	})
}

// found queues a file of a directory, unless its name shows that it has no records.
func (v *verifier) found(file string) {
	kind, err := datafile.Sniff(file)
	switch {
	case err == nil && kind == datafile.Unknown && datafile.NoRecords(filepath.Base(file)):
	case kind == datafile.Avro || kind == datafile.Parquet:
		v.unchecked++
	default: // unknown: a damaged header must not hide a data file
		v.queue = append(v.queue, verifiable{file, true})
	}
}

// size returns the size of all queued files, in bytes. Unreadable ones count 0 and are reported later.
func (v *verifier) size() (total int64) {
	for _, file := range v.queue {
		if info, err := os.Stat(file.path); err == nil {
			total += info.Size()
		}
	}
	if len(v.manifests) > 0 {
		total *= 2 // blocks are read again for their hashes
	}
	return total
}

func (v *verifier) file(ctx context.Context, file verifiable) error {
	f, err := datafile.Open(file.path)
	if file.found && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	v.files++
	if err != nil {
		return err
	}
	records, err := f.Verify(ctx, v.progress.add)
	v.records += records
	return errors.Join(err, f.Close())
}

func (v *verifier) complain(err error) {
	v.bad++
	v.progress.clear()
	// Errors of writing are ignored; the exit code reports the failure.
	_, _ = fmt.Fprintln(v.report, "bad:", err)
}
