package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/source"
)

// magics are the first bytes of files of each format, except Sparkey's, which are recognized by name.
var magics = map[string]string{
	sequencefile.Magic + "\x04": FormatSequenceFile, sequencefile.Magic + "\x05": FormatSequenceFile, sequencefile.Magic + "\x06": FormatSequenceFile,
	avro.Magic:    FormatAvro,
	parquet.Magic: FormatParquet, parquet.MagicEncrypted: FormatParquet,
}

const magicSize = 4

// notData is the advice for a file that may not be data.
const notData = "if it is not data, such as a README or a manifest, move it away, or give it a name that begins with _ or ."

// ErrUnknown is wrapped by the error of Plan for a version whose files are of no format that is read.
var ErrUnknown = errors.New("the format is not one of SequenceFile, Avro, Parquet, Sparkey (.spl) and finished blocks")

// sniff detects the format of a version without Sparkey logs from the first bytes of up to 32 files,
// spread evenly. If one of these is of a known format, the reader of that reports the others. If all of them are
// empty, the format is SequenceFile.
func (l *Loader) sniff(ctx context.Context, plan *Plan) error {
	group := sampleGroups(len(plan.Files))[0]
	heads := make([]string, len(group))
	if err := l.sampleEach(len(group), func(i int) (err error) {
		heads[i], err = l.head(ctx, plan, plan.Files[group[i]])
		return err
	}); err != nil {
		return err
	}
	plan.Format = FormatSequenceFile
	unknown := -1 // the first file of an unknown format
	for i, head := range heads {
		format := magics[head]
		switch {
		case format == "":
			if unknown < 0 && !isTruncated(head) {
				unknown = i
			}
		case plan.witness == "":
			plan.Format, plan.witness = format, plan.Files[group[i]].Name
		case format != plan.Format:
			return plan.mixed(plan.Files[group[i]].Name, format)
		}
	}
	if plan.witness == "" && unknown >= 0 {
		return fmt.Errorf("%s/%s: %w: at offset 0 it begins with %q; %s",
			l.src.Path(plan.DB, plan.Version), plan.Files[group[unknown]].Name, ErrUnknown, heads[unknown], notData)
	}
	return nil
}

// isTruncated reports whether a file that is no longer than a magic may be of a known format: it is damaged or empty.
func isTruncated(head string) bool {
	for magic := range magics {
		if len(head) < magicSize && strings.HasPrefix(magic, head) {
			return true
		}
	}
	return false
}

// mixed returns the error for a file of another format than the version's.
func (p *Plan) mixed(name, format string) error {
	if p.witness == "" {
		return fmt.Errorf("%w: %s is of format %s", ErrMixed, name, format)
	}
	return fmt.Errorf("%w: %s (%s) and %s (%s)", ErrMixed, p.witness, p.Format, name, format)
}

// head returns the first bytes of a file, as many as tell its format.
func (l *Loader) head(ctx context.Context, plan *Plan, file source.File) (string, error) {
	body, err := l.Open(ctx, plan, file, 0)
	if err != nil {
		return "", err
	}
	head, err := readHead(body)
	l.metrics.Read(plan.DB, int64(len(head)), 0)
	if err = errors.Join(err, body.Close()); err != nil {
		return "", fmt.Errorf("%s/%s: %w", l.src.Path(plan.DB, plan.Version), file.Name, err)
	}
	return head, nil
}

// readHead reads the first bytes of a file, as many as tell its format.
func readHead(body io.Reader) (string, error) {
	magic := make([]byte, magicSize)
	n, err := io.ReadFull(body, magic)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return string(magic[:n]), err
}

// FormatOf returns the format of a data file by its name, or else by its first bytes, which it reads from body; "" if it is none.
func FormatOf(name string, body io.Reader) (string, error) {
	switch {
	case IsLog(name):
		return FormatSparkey, nil
	case strings.HasSuffix(name, source.BlockSuffix):
		return FormatBlocks, nil
	}
	head, err := readHead(body)
	return magics[head], err
}
