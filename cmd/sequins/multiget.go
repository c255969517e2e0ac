package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"sequins/client"
	"sequins/internal/term"
)

const (
	// batchKeys and batchBytes limit the keys of one request.
	batchKeys  = 1000
	batchBytes = 1 << 20
	// maxLine limits a key on standard input, in bytes. Each byte of the key may be written as \xNN.
	maxLine = 4*(64<<10) + 2
)

// multiGet prints the values of keys, in several requests if there are many.
type multiGet struct {
	client  *client.Node
	db      string
	want    client.Want // from the second request on, the version of the first
	escaped bool        // keys are written as by term.Escape
	printer *recordPrinter

	keys, absences int64
}

func (m *multiGet) run(ctx context.Context, in io.Reader, args []string) error {
	err := m.all(ctx, in, args)
	if err == nil && m.printer.json {
		err = printJSON(m.printer.out, struct {
			Version string `json:"version"`
			Keys    int64  `json:"keys"`
			Absent  int64  `json:"absent"`
		}{m.want.Version, m.keys, m.absences})
	}
	if err = cmp.Or(err, m.printer.out.Flush()); err != nil || m.absences == 0 {
		return err
	}
	return withCode(exitAbsent, fmt.Errorf("%d of %d keys are not in version %s of %s", m.absences, m.keys, term.Clean(m.want.Version), m.db))
}

// scanLines is bufio.ScanLines, except that a return at the end of a line belongs to the key.
func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if line, _, ended := bytes.Cut(data, []byte("\n")); ended {
		return len(line) + 1, line, nil
	}
	if !atEOF || len(data) == 0 {
		return 0, nil, nil
	}
	return len(data), data, nil
}

// all reads the keys and prints their values.
func (m *multiGet) all(ctx context.Context, in io.Reader, args []string) error {
	keys, lines := slices.Values(args), bufio.NewScanner(in)
	lines.Split(scanLines)
	if len(args) == 1 && args[0] == "-" {
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		keys = func(yield func(string) bool) {
			for lines.Scan() && yield(lines.Text()) {
			}
		}
	}
	var batch [][]byte
	size := 0
	for arg := range keys {
		key, err := parseKey(arg, m.escaped)
		if err != nil {
			return err
		}
		batch = append(batch, key)
		if size += len(key); len(batch) == batchKeys || size >= batchBytes {
			if err := m.request(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	if len(batch) == 0 && m.keys > 0 {
		return nil
	}
	return m.request(ctx, batch) // also without any key: the database may not be there
}

// request prints the values of keys. If these are too large for one answer, it divides them.
func (m *multiGet) request(ctx context.Context, keys [][]byte) error {
	b, err := m.client.MultiGet(ctx, m.db, keys, m.want)
	switch {
	case errors.Is(err, client.ErrTooLarge) && len(keys) > 1:
		if err := m.request(ctx, keys[:len(keys)/2]); err != nil {
			return err
		}
		return m.request(ctx, keys[len(keys)/2:])
	case errors.Is(err, client.ErrNoVersion) && m.want.Version != "":
		return fmt.Errorf("version %s was replaced after %d keys, so the others would be from another version: try again, or set keep_versions: %w",
			term.Clean(m.want.Version), m.keys, err)
	case err != nil:
		return err
	}
	m.want = client.Want{Version: b.Version}
	for i, value := range b.Values {
		m.keys++
		if value != nil {
			err = m.printer.record(keys[i], func(w io.Writer) error { _, err := w.Write(value); return err })
		} else {
			m.absences++
			err = m.printer.key(keys[i], record{Absent: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
