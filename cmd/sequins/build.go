package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/input/finished"
	"sequins/internal/human"
	"sequins/internal/sleep"
	"sequins/internal/term"
	"sequins/load"
	"sequins/load/build"
	"sequins/node/daemon"
	"sequins/source"
)

func buildCommand() *cobra.Command {
	var conf string
	cmd := &cobra.Command{
		Use:   "build SRC DST",
		Short: "Turn one version of a source into finished blocks",
		Long: `Build the blocks of one version once, so that nodes copy them instead of reading
the version record by record. The blocks are those that a node would make.

SRC is the directory of a version in any source and format that nodes read,
<source>/<db>/<version>: a path, or an hdfs://, s3://, gs:// or abfss:// URL. DST
is a new directory of this machine, <dir>/<db>/<version>. If the source of the nodes
is elsewhere, copy DST there with its own tool: hdfs dfs -put, aws s3 cp
--recursive, gcloud storage cp -r or azcopy copy --recursive. Nodes take a copy
for incomplete until all of its blocks are there.

DST gets its name when it is whole. A build writes to .VERSION.building beside it,
which needs room for the blocks and for sorting, up to twice the size of the
data. It removes that directory if it fails or is interrupted. The next build of
the same DST replaces what one that was killed has left.

The settings of the blocks are the defaults of sequins.conf, those of --config, or of
the environment: SEQUINS_STORAGE_COMPRESSION, or SEQUINS_DB__words__KEY for key of
[db.words]. The database is that of DST. [s3], [azure] and [hdfs] hold for SRC. All
cores are used; memory is that of a load.

Exits with 1 if the build fails, and 2 for an invalid command line.`,
		Example: `  sequins build /data/jobs/words/2026-01-31 /srv/sequins/words/2026-01-31
  sequins build --config /etc/sequins.conf hdfs://namenode/jobs/words/7 /tmp/words/7
  aws s3 cp --recursive /tmp/words/7 s3://bucket/sequins/words/7`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			return untilSignal(cmd.Context(), log, endPatience, nil, func(ctx context.Context) error {
				return buildBlocks(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), conf, args[0], args[1])
			})
		},
	}
	cmd.Flags().StringVar(&conf, "config", "", "configuration `file` with the settings of the database and of the source")
	return cmd
}

func buildBlocks(ctx context.Context, out, report io.Writer, conf, srcDir, dstDir string) error {
	src, err := splitVersion("SRC", srcDir)
	if err != nil {
		return err
	}
	dst, err := splitVersion("DST", dstDir)
	if err != nil {
		return err
	}
	if strings.Contains(dst.source, "://") {
		return usageError(fmt.Errorf("DST: %s is not a directory of this machine: build into one, and copy it with hdfs dfs -put, aws s3 cp --recursive, gcloud storage cp -r or azcopy copy --recursive", dstDir))
	}
	c, _, err := config.Load(conf, config.Flag{Name: "SRC", Key: "source", Value: src.source})
	if err != nil {
		return err
	}
	from, err := daemon.OpenSource(ctx, &c)
	if err != nil {
		return err
	}
	job := build.Job{
		From: build.Place{Source: from, DB: src.db, Version: src.version}, To: filepath.Clean(dst.dir),
		Options: daemon.LoadOptions(&c, dst.db), Release: buildName(),
	}
	job.Options.Throttle = 0
	debug.SetMemoryLimit(int64(c.LoadMemoryLimit()-c.Load.Memory) / 4 * 3) // as in a load process; sorting takes its memory outside of Go's heap
	versions, err := source.Versions(ctx, from, src.db)
	if err == nil {
		job.Options.RequireSuccess, err = requiresSuccess(ctx, from, src.db, versions, c.ForDB(dst.db).RequireSuccessFile)
	}
	if err != nil {
		return err
	}
	if err := waitSettled(ctx, report, c.Settle, job.From, job.Options.RequireSuccess); err != nil {
		return err
	}
	m, leftOut, err := runBuild(ctx, report, job)
	if err != nil {
		return err
	}
	if leftOut > 0 {
		if _, err := fmt.Fprintf(out, "left out %s whose key is null, or whose key or value is too long, as max_record_errors allows\n", human.Plural(int(leftOut), "record")); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "built %s with %s and %s of %s in %s\n", human.Plural(len(m.Blocks), "block"), human.Plural(int(m.Records()), "record"), size(m.Size()), job.From, job.To)
	return err
}

// waitSettled waits, if one listing does not show that all files of a version are there, and returns an error if they change. What a
// listing has against the version, the build reports. Names that are left out are printed.
func waitSettled(ctx context.Context, report io.Writer, settle time.Duration, from build.Place, requireSuccess bool) error {
	list := func() (source.Listing, error) {
		return source.List(ctx, from.Source, from.DB, from.Version, requireSuccess)
	}
	first, err := list()
	if err != nil || first.Incomplete != "" {
		return nil //nolint:nilerr // the plan of the build finds the same
	}
	for _, name := range first.LeftOut {
		_, _ = fmt.Fprintf(report, "left out: %s\n", name) // an error does not keep it from being built
	}
	if settle <= 0 || first.Settled(settle) {
		return nil
	}
	_, _ = fmt.Fprintf(report, "waiting %v (settle) to see that the files of %s do not change\n", settle, from)
	if sleep.For(ctx, settle) != nil {
		return errors.New("interrupted")
	}
	if now, err := list(); err != nil || now.Fingerprint != first.Fingerprint {
		return errors.Join(fmt.Errorf("%s: its files have changed within %v, so that they are still being written: build it when that is done", from, settle), err)
	}
	return nil
}

// runBuild runs a build and shows its progress meanwhile. It returns how many records were left out.
func runBuild(ctx context.Context, report io.Writer, job build.Job) (m *finished.Manifest, leftOut int64, err error) {
	var p load.Progress
	shown := term.NewProgress(report, "building", term.Bytes(func() (done, total int64) {
		now := p.Snapshot()
		return now.BytesDone, now.Bytes
	}))
	m, err = build.Run(ctx, job, &p)
	shown.Stop()
	if err != nil && ctx.Err() != nil && !errors.As(err, new(*fs.PathError)) { // what could not be removed is said
		return nil, 0, errors.New("interrupted: what was written is removed")
	}
	return m, p.Snapshot().LeftOut, err
}

// splitVersion takes an argument apart: <source>/<db>/<version>.
func splitVersion(what, arg string) (location, error) {
	path, err := absolute(arg)
	if err != nil {
		return location{}, err
	}
	l := versionAt(strings.TrimRight(path, "/"))
	if !l.valid() {
		return l, usageError(fmt.Errorf("%s: %q is not the directory of a version: <source>/<db>/<version>, with valid names as the last two: letters, digits and . _ - = + , @ :; see sequins build --help", what, arg))
	}
	return l, nil
}
