package load

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"sequins/source"
)

// magics are what files of the formats begin with, apart from Sparkey's, which
// are known by their names.
var magics = map[string]string{
	"SEQ\x04": FormatSequenceFile, "SEQ\x05": FormatSequenceFile, "SEQ\x06": FormatSequenceFile,
	"Obj\x01": FormatAvro,
	"PAR1":    FormatParquet,
}

const magicSize = 4

// sniff finds the format of a version without Sparkey's logs from the first
// bytes of its files, up to 32 of them, spread evenly. A file of no known
// format is damaged or alien: the reader of the version's format, which is
// that of SequenceFiles if none is known, will say so.
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

// mixed is the error about a file of another format than the version's.
func (p *Plan) mixed(name, format string) error {
	if p.witness == "" {
		return fmt.Errorf("%w: %s is of format %s", ErrMixed, name, format)
	}
	return fmt.Errorf("%w: %s (%s) and %s (%s)", ErrMixed, p.witness, p.Format, name, format)
}

// formatOf returns the format that a file begins like, "" if that is none.
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
