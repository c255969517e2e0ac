package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/term"
)

func mgetCommand() *cobra.Command {
	var node nodeFlags
	var escaped, asJSON bool
	var atLeast string
	cmd := &cobra.Command{
		Use:   "mget DB {KEY... | -}",
		Short: "Print the values of several keys of a running sequins, all from one version",
		Long: `Print the values of keys in their order, all from one version, each on a line:
key, tab, value, escaped as by cat. An absent key has a line with nothing behind it.
With -, the keys are the lines of standard input, any number of them.

Keys are taken as they are: a backslash is a backslash. With --escaped they are
written as scan, cat and mget print them, so that any key can be passed on.

` + nodeHelp + `

With --json each line is an object with "key" and "value", or "key_base64" and
"value_base64" where they are not UTF-8, or "absent": true; the last one has
"version", "keys" and "absent".

Exits with 3 if a key or the database does not exist, 5 if the node does not
answer, and 6 if a value cannot be read.`,
		Example: `  sequins mget words apple beet --server http://node1:9599
  cut -f1 users.tsv | sequins mget --json users - --server node1:9599
  sequins scan words --keys-only | sequins mget --escaped --server node2:9599 words -`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node) error {
				m := &multiGet{
					client: c, db: args[0], want: client.Want{AtLeast: atLeast}, escaped: escaped,
					printer: newRecordPrinter(cmd.OutOrStdout(), asJSON),
				}
				return m.run(cmd.Context(), cmd.InOrStdin(), args[1:])
			})
		},
	}
	registerEscaped(cmd, &escaped, "keys are")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object per line")
	registerAtLeast(cmd, &atLeast)
	node.register(cmd)
	return cmd
}

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
	if ferr := m.printer.out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	if m.printer.json {
		end := struct {
			Version string `json:"version"`
			Keys    int64  `json:"keys"`
			Absent  int64  `json:"absent"`
		}{m.want.Version, m.keys, m.absences}
		if err := errors.Join(printJSON(m.printer.out, end), m.printer.out.Flush()); err != nil {
			return err
		}
	}
	if m.absences == 0 {
		return nil
	}
	err = withCode(exitAbsent, fmt.Errorf("%d of %d keys are not in version %s of %s", m.absences, m.keys, term.Clean(m.want.Version), m.db))
	if m.printer.json {
		err = inResult{err}
	}
	return err
}

// all reads the keys and prints their values.
func (m *multiGet) all(ctx context.Context, in io.Reader, args []string) error {
	keys, lines := slices.Values(args), bufio.NewScanner(in)
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
	if len(batch) == 0 {
		return nil
	}
	return m.request(ctx, batch)
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
