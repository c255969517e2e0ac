package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sequins/config"
	"sequins/internal/names"
	"sequins/source"
)

func versionsCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "versions [DB...]",
		Short: "List the databases and versions of a source",
		Long: `List the versions of the databases in a source: the number and size of files, the
time of the last write, and whether the version is complete. The rules are those
of loading: require_success_file, the files listed by _SUCCESS or _committed_
files, and _temporary and _started_ files of unfinished jobs. Excluded files are
counted separately. A version that cannot be read, or whose layout is not
supported, is shown with its error.

The source is --source, or source of sequins.conf or /etc/sequins.conf, which
also has the settings of remote sources. Nothing is loaded, and no server is needed.

Exits with 1 if something could not be listed, or if a DB does not exist.`,
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

// lister fills the table and collects errors.
type lister struct {
	src    source.Source
	config *config.Config
	table  *table
	warn   io.Writer
	failed []error
}

// listed is the description of one version.
type listed struct {
	files    int
	bytes    int64
	modified time.Time
	complete string
	success  bool
}

// complete describes a complete version.
const complete = "yes"

// maxLookups is the number of parallel lookups of versions. Each takes one or two round trips to S3 or
// HDFS.
const maxLookups = 8

// database adds the versions of a database, the newest first.
func (l *lister) database(ctx context.Context, db string) error {
	if !names.ValidDatabase(db) {
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
	_ = group.Wait() // errors are in errs
	label := db
	other, err := l.requires(ctx, db, names, found)
	if err != nil {
		return err
	}
	for i, v := range slices.Backward(found) {
		switch {
		case errs[i] != nil:
			v.complete = "broken: " + errs[i].Error()
		case other != "" && !v.success && strings.HasPrefix(v.complete, complete):
			v.complete = fmt.Sprintf("no: there is no %s file yet, and version %s has one", source.SuccessFile, other)
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

// requires returns a version that has _SUCCESS, because of which others need it with
// require_success_file = "auto". It is "" if none is needed.
func (l *lister) requires(ctx context.Context, db string, names []string, found []listed) (string, error) {
	if l.config.ForDB(db).RequireSuccessFile != config.RequireAuto || !slices.ContainsFunc(found, func(v listed) bool { return !v.success }) {
		return "", nil
	}
	return source.FindSuccess(ctx, l.src, db, names)
}

// look inspects one version. A version that is removed meanwhile is not an error.
func (l *lister) look(ctx context.Context, db, name string) (v listed, err error) {
	list, err := source.List(ctx, l.src, db, name, l.config.ForDB(db).RequireSuccessFile == config.RequireTrue)
	if errors.Is(err, fs.ErrNotExist) {
		v.complete = "it has just been removed"
		return v, nil
	}
	v.success, v.files = list.Success, len(list.Files)
	for _, f := range list.Files {
		v.bytes += f.Size
		if f.ModTime.After(v.modified) {
			v.modified = f.ModTime
		}
	}
	v.complete = complete
	switch {
	case list.Incomplete != "":
		v.complete = "no: " + list.Incomplete
	case len(list.LeftOut) == 1:
		v.complete += ", without " + list.LeftOut[0]
	case len(list.LeftOut) > 1:
		v.complete += fmt.Sprintf(", without %s and %d more", list.LeftOut[0], len(list.LeftOut)-1)
	}
	return v, err
}

// leftOut reports directories that are ignored because of their names.
func (l *lister) leftOut(ctx context.Context, db string) {
	names, err := source.Invalid(ctx, l.src, db)
	if err != nil {
		return // the table was complete; ignore the error
	}
	what := "database"
	if db != "" {
		what = "version of " + db
	}
	for _, name := range names {
		// Errors of writing are ignored.
		_, _ = fmt.Fprintf(l.warn, "left out: %q cannot be the name of a %s\n", name, what)
	}
}
