package load

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/source"
)

// magics are the first bytes of files of each format, except Sparkey's, which are recognized by name.
var magics = map[string]string{
	sequencefile.Magic + "\x04": FormatSequenceFile, sequencefile.Magic + "\x05": FormatSequenceFile, sequencefile.Magic + "\x06": FormatSequenceFile,
	avro.Magic:    FormatAvro,
	parquet.Magic: FormatParquet,
}

const magicSize = 4

// sniff detects the format of a version without Sparkey logs from the first bytes of up to 32 files,
// spread evenly. It ignores files of an unknown format, because the reader of the version's format
// reports them. The default format is SequenceFile.
func (l *Loader) sniff(ctx context.Context, plan *Plan) error {
	group := sampleGroups(len(plan.Files))[0]
	formats := make([]string, len(group))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sampleParallel)
	for i, file := range group {
		g.Go(func() (err error) {
			formats[i], err = l.formatOf(ctx, plan, plan.Files[file])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	plan.Format = FormatSequenceFile
	for i, format := range formats {
		switch {
		case format == "":
		case plan.witness == "":
			plan.Format, plan.witness = format, plan.Files[group[i]].Name
		case format != plan.Format:
			return plan.mixed(plan.Files[group[i]].Name, format)
		}
	}
	return nil
}

// mixed returns the error for a file of another format than the version's.
func (p *Plan) mixed(name, format string) error {
	if p.witness == "" {
		return fmt.Errorf("%w: %s is of format %s", ErrMixed, name, format)
	}
	return fmt.Errorf("%w: %s (%s) and %s (%s)", ErrMixed, p.witness, p.Format, name, format)
}

// formatOf returns the format that the first bytes of a file indicate, "" if unknown.
func (l *Loader) formatOf(ctx context.Context, plan *Plan, file source.File) (string, error) {
	body, err := l.src.Open(ctx, plan.DB, plan.Version, file, source.ReadOptions{Bandwidth: l.opts.Bandwidth})
	if err != nil {
		return "", err
	}
	magic := make([]byte, magicSize)
	n, err := io.ReadFull(body, magic)
	l.metrics.Read(plan.DB, int64(n), 0)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err = errors.Join(err, body.Close()); err != nil {
		return "", fmt.Errorf("%s/%s: %w", l.src.Path(plan.DB, plan.Version), file.Name, err)
	}
	return magics[string(magic)], nil
}
