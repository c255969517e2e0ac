package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/input/finished"
	"sequins/internal/human"
	"sequins/internal/names"
	"sequins/internal/nearest"
	"sequins/internal/parallel"
	"sequins/internal/term"
	"sequins/source"
)

func versionsCommand() *cobra.Command {
	var flags serveFlags
	var asJSON bool
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

Exits with 3 if a DB does not exist, 5 if the source does not answer, 6 if a
version or a directory cannot be read, and 1 for other failures.`,
		Example: `  sequins versions --source /srv/sequins
  sequins versions --config /etc/sequins.conf words
  sequins versions --json words | jq -r '.databases[].versions[] | select(.complete) | .version'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.withSource(cmd.Context(), func(c *config.Config, src source.Source) error {
				return listVersions(cmd, c, src, args, asJSON)
			})
		},
	}
	flags.registerSource(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

// sourceListing is the result of sequins versions as JSON.
type sourceListing struct {
	Source    string      `json:"source"`
	Databases []dbListing `json:"databases"`
}

type dbListing struct {
	Database string           `json:"database"`
	Versions []versionListing `json:"versions"` // the newest first
	Error    string           `json:"error,omitempty"`
}

type versionListing struct {
	Version  string    `json:"version"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Written  time.Time `json:"written,omitzero"` // the newest file
	Complete bool      `json:"complete"`
	// Reason is why the version is not complete, Error why it cannot be read or loaded.
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
	// Success reports whether it has a _SUCCESS file. LeftOut are the files that its markers exclude.
	Success bool     `json:"success_file"`
	LeftOut []string `json:"left_out,omitempty"`
}

// listVersions lists the named databases, or all.
func listVersions(cmd *cobra.Command, c *config.Config, src source.Source, dbs []string, asJSON bool) error {
	ctx, out, report := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	l := lister{src: src, config: c}
	progress := term.NewProgress(report, "listing "+c.Source, func() string { return human.Plural(int(l.looked.Load()), "version") })
	listing, failed := l.list(ctx, dbs)
	progress.Stop()
	if listing == nil {
		return failed
	}
	for _, remark := range l.remarks {
		_, _ = fmt.Fprintln(report, "note:", remark) // an error does not keep the list from being printed
	}
	if asJSON {
		return errors.Join(printJSON(out, listing), failed)
	}
	return errors.Join(printVersions(out, listing), failed)
}

// lister looks at the versions of a source.
type lister struct {
	src     source.Source
	config  *config.Config
	looked  atomic.Int64 // the versions that were looked at
	remarks []string     // what is in the source beside databases and versions
}

// list lists databases. The error is of those that could not be listed; without a listing nothing could.
func (l *lister) list(ctx context.Context, dbs []string) (*sourceListing, error) {
	listing := &sourceListing{Source: l.config.Source, Databases: []dbListing{}}
	if len(dbs) == 0 {
		in, err := source.ListNames(ctx, l.src, "")
		if err != nil {
			return nil, ofSource(l.src, err)
		}
		dbs, l.remarks = in.Names, in.Remarks("")
	}
	var failed []error
	for _, db := range dbs {
		if !names.ValidDatabase(db) {
			return nil, usageError(fmt.Errorf("%q cannot be the name of a database", db))
		}
		d, err := l.database(ctx, db)
		listing.Databases = append(listing.Databases, d)
		failed = append(failed, err)
	}
	return listing, errors.Join(failed...)
}

// maxLookups is the number of parallel lookups of versions. A lookup takes one or two round trips to S3 or HDFS.
const maxLookups = 8

func (l *lister) database(ctx context.Context, db string) (d dbListing, err error) {
	d = dbListing{Database: db, Versions: []versionListing{}}
	in, err := source.ListNames(ctx, l.src, db)
	err = withNearest(ctx, l.src, db, err)
	var failed error
	if err == nil {
		d.Versions, failed, err = l.lookAll(ctx, db, in.Names)
	}
	if err != nil {
		d.Error = err.Error()
		return d, ofSource(l.src, err)
	}
	slices.Reverse(d.Versions)
	l.remarks = append(l.remarks, in.Remarks(db)...)
	return d, failed
}

// withNearest adds to the error of a database that the source does not have the name of one that it has.
func withNearest(ctx context.Context, src source.Source, db string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known, _ := source.Databases(ctx, src) // without them, no name is added
	return fmt.Errorf("%w%s", err, nearest.DidYouMean(nearest.Of(db, known)))
}

// lookAll inspects versions, several at a time. failed is of those that cannot be read.
func (l *lister) lookAll(ctx context.Context, db string, all []string) (found []versionListing, failed, err error) {
	require, err := requiresSuccess(ctx, l.src, db, all, l.config.ForDB(db).RequireSuccessFile)
	if err != nil {
		return []versionListing{}, nil, err
	}
	errs := make([]error, len(all))
	found = make([]versionListing, len(all))
	err = parallel.Run(ctx, maxLookups, len(all), func(ctx context.Context, i int) error {
		var err error
		if found[i], err = l.look(ctx, db, all[i], require); err != nil {
			errs[i] = withCode(exitUnreadable, ofSource(l.src, err)) // it was listed
		}
		l.looked.Add(1)
		return nil
	})
	return found, errors.Join(errs...), err
}

// requiresSuccess reports whether versions of a database need a _SUCCESS file, as on a node: with require_success_file = "auto", all do if one
// has it. names are all versions, the newest last.
func requiresSuccess(ctx context.Context, src source.Source, db string, names []string, rule config.Require) (bool, error) {
	if rule != config.RequireAuto {
		return rule == config.RequireTrue, nil
	}
	found, err := source.FindSuccess(ctx, src, db, names)
	return found != "", err
}

// look inspects one version. A version that is removed meanwhile is not an error.
func (l *lister) look(ctx context.Context, db, name string, requireSuccess bool) (versionListing, error) {
	v := versionListing{Version: name}
	list, err := source.List(ctx, l.src, db, name, requireSuccess)
	if err == nil && list.Incomplete == "" && list.Blocks != "" {
		var m *finished.Manifest
		if m, err = readManifest(manifestIn(ctx, l.src, db, name)); err == nil {
			err = m.Match(list.Files)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		v.Reason = "it has just been removed"
		return v, nil
	}
	v.Success, v.Files, v.LeftOut = list.Success, len(list.Files), list.LeftOut
	for _, f := range list.Files {
		v.Bytes += f.Size
		if f.ModTime.After(v.Written) {
			v.Written = f.ModTime.UTC()
		}
	}
	v.Reason = list.Incomplete
	if v.Reason == "" && v.Bytes == 0 && err == nil && !l.config.ForDB(db).AllowEmpty {
		v.Reason = "it is empty, and allow_empty is not set"
	}
	if v.Complete = err == nil && v.Reason == ""; err != nil {
		v.Error = err.Error()
	}
	return v, err
}

func printVersions(out io.Writer, l *sourceListing) error {
	t := term.NewTable("DATABASE", "VERSION", "FILES", "SIZE", "WRITTEN", "COMPLETE")
	for _, d := range l.Databases {
		label := d.Database
		if len(d.Versions) == 0 && d.Error == "" {
			t.Row(label, "-", "-", "-", "-", "there are no versions")
		}
		for _, v := range d.Versions {
			t.Row(label, v.Version, number(int64(v.Files)), size(v.Bytes), day(v.Written), term.Clean(v.verdict()))
			label = ""
		}
	}
	_, err := fmt.Fprint(out, t)
	return err
}

func (v versionListing) verdict() string {
	switch {
	case v.Error != "":
		return "broken: " + v.Error
	case v.Reason != "":
		return "no: " + v.Reason
	case len(v.LeftOut) > 0:
		return "yes, without " + human.Some(v.LeftOut)
	}
	return "yes"
}

// isRemote reports whether a source, or a file, is on another machine.
func isRemote(url string) bool {
	scheme, _, found := strings.Cut(url, "://")
	return found && !strings.EqualFold(scheme, "file")
}
