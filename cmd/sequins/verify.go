package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"sequins/source"
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR|FILE...",
		Short: "Read blocks and data files and check every checksum",
		Long: `Read blocks, SequenceFiles and Sparkey logs from start to end and check whatever
their formats allow to check: in a block every checksum, the order of the keys,
the index and the filter; in the others lengths, sync markers, compressed data
and counts.

A DIR is searched for such files, with everything below it; it can be the local
store of a running sequins. Files of other kinds and hidden ones (_ or .) are
passed over there, but not when they are named.

Says which files are bad, and where, and exits with 1 if any is, or if there
was nothing to verify.`,
		Example: `  sequins verify /var/sequins
  sequins verify /srv/sequins/words/2026-01-31/part-r-0000*`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
}

// verifier counts what it has seen.
type verifier struct {
	report              io.Writer // of what is bad
	files, records, bad int64
}

func verify(ctx context.Context, out, report io.Writer, paths []string) error {
	v := verifier{report: report}
	for _, path := range paths {
		err := v.path(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.complain(err)
		}
	}
	switch {
	case v.bad > 0:
		return fmt.Errorf("%d of %d files are bad", v.bad, v.files)
	case v.files == 0:
		return errors.New("found no blocks and no data files")
	}
	_, err := fmt.Fprintf(out, "%d files with %d records are good\n", v.files, v.records)
	return err
}

// path verifies a file that was named, or what is in a directory.
func (v *verifier) path(ctx context.Context, path string) error {
	if !isDir(path) {
		return v.file(ctx, path)
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile, by the sequins whose store it is
		case err != nil:
			v.files++
			v.complain(err)
			return nil
		case file != root && source.Hidden(entry.Name()):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		kind, err := sniff(file)
		if kind == "" && err == nil {
			return nil
		}
		if err := v.file(ctx, file); errors.Is(err, fs.ErrNotExist) {
			v.files--
		} else if err != nil {
			v.complain(err)
		}
		return ctx.Err()
	})
}

func (v *verifier) file(ctx context.Context, path string) error {
	v.files++
	f, err := openFile(path)
	if err != nil {
		return err
	}
	records, err := f.verify(ctx)
	v.records += records
	return errors.Join(err, f.Close())
}

func (v *verifier) complain(err error) {
	v.bad++
	// Nothing can be done where the complaint cannot be written; the exit code tells.
	_, _ = fmt.Fprintln(v.report, "bad:", err)
}
