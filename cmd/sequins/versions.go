package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sequins/config"
	"sequins/source"
)

func versionsCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "versions [DB...]",
		Short: "List the databases and versions of a source",
		Long: `List the versions of databases in a source: how many files and bytes each has,
when it was last written to, and whether it is complete, which is what sequins
would say of it: with require_success_file, a version without a _SUCCESS file is
not, and neither is one that lacks a file which _SUCCESS lists.

The source is --source, or source of sequins.conf or /etc/sequins.conf, where
S3 and HDFS have their settings too. Nothing is loaded, and no server is needed.

Exits with 1 if something could not be listed, or a DB is not there.`,
		Example: `  sequins versions --source /srv/sequins
  sequins versions --config /etc/sequins.conf words`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := flags.load()
			if err != nil {
				return err
			}
			return listVersions(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), &c, args)
		},
	}
	flags.registerSource(cmd)
	return cmd
}

// listVersions lists the named databases, or all.
func listVersions(ctx context.Context, out, warn io.Writer, c *config.Config, dbs []string) (err error) {
	src, err := openSource(ctx, c)
	if err != nil {
		return err
	}
	if s, ok := src.(io.Closer); ok {
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	l := lister{src: src, config: c, table: newTable(out, "DATABASE", "VERSION", "FILES", "SIZE", "WRITTEN", "COMPLETE"), warn: warn}
	if len(dbs) == 0 {
		if dbs, err = src.Databases(ctx); err != nil {
			return err
		}
		l.leftOut(ctx, "")
	}
	for _, db := range dbs {
		if err := l.database(ctx, db); err != nil {
			l.failed = append(l.failed, err)
		}
	}
	return errors.Join(append([]error{l.table.flush()}, l.failed...)...)
}

// lister fills the table, and keeps what went wrong.
type lister struct {
	src    source.Source
	config *config.Config
	table  *table
	warn   io.Writer
	failed []error
}

// listed is what is to be said of one version.
type listed struct {
	files    int
	bytes    int64
	modified time.Time
	complete string
}

// maxLookups is how many versions are looked at at a time: each takes a round trip or two to S3 or HDFS.
const maxLookups = 8

// database adds the versions of a database, the newest first.
func (l *lister) database(ctx context.Context, db string) error {
	if !source.ValidDatabase(db) {
		return usageError{fmt.Errorf("%q cannot be the name of a database", db)}
	}
	names, err := l.src.Versions(ctx, db)
	if err != nil {
		return err
	}
	l.leftOut(ctx, db)
	found := make([]listed, len(names))
	errs := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(maxLookups)
	for i, name := range names {
		group.Go(func() error {
			found[i], errs[i] = l.look(ctx, db, name)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	label := db
	for i, v := range slices.Backward(found) {
		if errs[i] != nil {
			v.complete = "cannot be listed"
		}
		l.table.row(label, names[i], number(int64(v.files)), size(v.bytes), day(v.modified), plain(v.complete))
		label = ""
	}
	if len(names) == 0 {
		l.table.row(label, "-", "-", "-", "-", "there are no versions")
	}
	l.failed = append(l.failed, errs...)
	return nil
}

// look finds out about one version. One that is removed meanwhile is no error.
func (l *lister) look(ctx context.Context, db, name string) (v listed, err error) {
	files, err := l.src.Files(ctx, db, name)
	if errors.Is(err, fs.ErrNotExist) {
		v.complete = "it has just been removed"
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.files = len(files)
	for _, f := range files {
		v.bytes += f.Size
		if f.ModTime.After(v.modified) {
			v.modified = f.ModTime
		}
	}
	complete, reason, err := source.CheckComplete(ctx, l.src, db, name, files, l.config.ForDB(db).RequireSuccessFile)
	v.complete = "yes"
	if !complete {
		v.complete = "no: " + reason
	}
	return v, err
}

// leftOut says which directories are none of a database's versions, or no databases, because of their names.
func (l *lister) leftOut(ctx context.Context, db string) {
	names, err := source.Invalid(ctx, l.src, db)
	if err != nil {
		return // what could be listed a moment ago is in the table
	}
	what := "database"
	if db != "" {
		what = "version of " + db
	}
	for _, name := range names {
		// Where it cannot be written, nobody reads it.
		_, _ = fmt.Fprintf(l.warn, "left out: %q cannot be the name of a %s\n", name, what)
	}
}
