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

// sniff detects the format of a version without Sparkey logs from the first bytes of the first file, of up to 32 that are spread evenly,
// that is of a known format. The reader of that format reports files of others. If all of the files are
// empty, the format is SequenceFile.
func (l *Loader) sniff(ctx context.Context, plan *Plan) (unknown error) {
	plan.Format = FormatSequenceFile
	for _, i := range sampleGroups(len(plan.Files))[0] {
		file := plan.Files[i]
		if file.Size == 0 {
			continue
		}
		head, err := l.head(ctx, plan, file)
		if err != nil {
			return err
		}
		if format := magics[head]; format != "" {
			plan.Format, plan.witness = format, file.Name
			return nil
		}
		if unknown == nil && !isTruncated(head) {
			unknown = fmt.Errorf("%s/%s: %w: at offset 0 it begins with %q; %s", l.src.Path(plan.DB, plan.Version), file.Name, ErrUnknown, head, notData)
		}
	}
	return unknown
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
	l.progress.fetched(int64(len(head)), 0)
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

// FormatOf returns the format of a data file, which it finds by the name, or else by the first bytes of body. It returns "" for an unknown format.
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
