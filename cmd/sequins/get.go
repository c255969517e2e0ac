package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/term"
)

// getFlags are the flags of sequins get.
type getFlags struct {
	file    fileFlags
	node    nodeFlags
	escaped bool
	json    bool
	atLeast string
}

func getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get {[ADDR] DB | FILE} KEY",
		Short: "Print the value of a key, from a running sequins or from a file",
		Long: `Print the value of a key unchanged.

` + nodeHelp + `

The value is from the version that is served, or with --at-least from that one or a
later one.

FILE is a block of the local store, a SequenceFile, a Sparkey log, an Avro or a
Parquet file, and no server is needed. It has a slash, or is a file of the current
directory; all else is a database. The index of a block finds the key; the
other files are read from start to end, and the last record of the key counts.
Values are those that a load makes of the records.` + fileHelp + `

Exits with 3 if the key, the database or the file does not exist, 5 if the node or
the source does not answer, and 6 if the value cannot be read.`,
		Example: `  sequins get http://node1:9599 words apple
  sequins get words apple --json | jq -r .version
  sequins get /var/sequins/data/words/2026-01-31/00003.block apple
  sequins get s3://bucket/words/2026-01-31/part-00003.parquet --key word apple`,
		Args: f.node.args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = f.node.take(args)
			key, err := parseKey(args[1], f.escaped)
			if err != nil {
				return err
			}
			if f.node.server == "" && isFile(args[0]) {
				return f.file.files(cmd, func(open *files) error { return f.fromFile(cmd, open, args[0], key) })
			}
			f.node.config = f.file.config
			return f.node.ask(cmd, args, func(c *client.Node, args []string) error { return f.fromNode(cmd, c, args[0], key) })
		},
	}
	registerEscaped(cmd, &f.escaped, "KEY is")
	cmd.Flags().BoolVar(&f.json, "json", false, `print {"key", "value"} and where it is from as JSON`)
	registerAtLeast(cmd, &f.atLeast)
	f.file.register(cmd)
	f.node.registerNode(cmd)
	return cmd
}

// registerAtLeast registers --at-least.
func registerAtLeast(cmd *cobra.Command, version *string) {
	cmd.Flags().StringVar(version, "at-least", "", "read no older `version` than this one")
}

// registerEscaped registers --escaped, for keys that are arguments.
func registerEscaped(cmd *cobra.Command, escaped *bool, what string) {
	cmd.Flags().BoolVar(escaped, "escaped", false, what+` written as scan and cat print keys, such as \x00`)
}

// parseKey returns the key that an argument means. If it is escaped, it is as a term.Escaper has written it.
func parseKey(text string, escaped bool) ([]byte, error) {
	if !escaped {
		return []byte(text), nil
	}
	key := make([]byte, 0, len(text))
	for {
		plain, escape, found := strings.Cut(text, `\`)
		key = append(key, plain...)
		if !found {
			return key, nil
		}
		r, _, rest, err := strconv.UnquoteChar(`\`+escape, 0)
		if err != nil || !strings.ContainsRune(`\tnrx`, rune(escape[0])) {
			return nil, usageError(fmt.Errorf(`the key is not escaped: behind a backslash there must be \, t, n, r or xNN, and not %q`, escape[:min(3, len(escape))]))
		}
		key, text = append(key, byte(r)), rest
	}
}

// fromNode prints the value of a key on a node.
func (f *getFlags) fromNode(cmd *cobra.Command, c *client.Node, db string, key []byte) error {
	return f.print(cmd, key, term.NewProgress(cmd.ErrOrStderr(), "reading from "+c.URL(), 0), func(w io.Writer, p *term.Progress) (r record, err error) {
		v, err := c.Get(cmd.Context(), db, key, client.Want{AtLeast: f.atLeast})
		if errors.Is(err, client.ErrNotFound) {
			var no *client.NodeError
			errors.As(err, &no)
			return r, withCode(exitAbsent, fmt.Errorf("version %s of %s has no key %s", term.Clean(no.Version), db, term.Excerpt(key, int64(len(key)))))
		}
		if err != nil {
			return r, err
		}
		defer v.Close() //nolint:errcheck // it is only read
		_, err = io.Copy(&counted{w, p}, v)
		return record{DB: db, Version: v.Version}, err
	})
}

// print prints the value of a key that read writes, and in JSON where it is from.
func (f *getFlags) print(cmd *cobra.Command, key []byte, p *term.Progress, read func(io.Writer, *term.Progress) (record, error)) error {
	_, out := newOutput(cmd, p)
	var value bytes.Buffer
	if f.json {
		out = &value
	}
	r, err := read(out, p)
	if p.Stop(); err != nil || !f.json {
		return err
	}
	return printJSON(cmd.OutOrStdout(), r.withKey(key).withValue(value.Bytes()))
}

// counted is a writer that shows its progress.
type counted struct {
	io.Writer
	p *term.Progress
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.p.Add(int64(n))
	return n, err
}

// fromFile prints the value of a key in a file.
func (f *getFlags) fromFile(cmd *cobra.Command, open *files, path string, key []byte) error {
	return open.named(path, true, func(d dataFile, file openData) error {
		return f.print(cmd, key, term.NewProgress(cmd.ErrOrStderr(), "reading "+d.path, d.size), func(w io.Writer, p *term.Progress) (record, error) {
			found, err := file.Get(key, w, p.Add)
			if err == nil && !found {
				err = withCode(exitAbsent, fmt.Errorf("%s has no key %s", d.path, term.Excerpt(key, int64(len(key)))))
			}
			return record{File: d.path}, d.failed(err)
		})
	})
}

// isFile reports whether an argument means a file, and not a database.
func isFile(arg string) bool {
	info, err := os.Stat(arg)
	return strings.Contains(arg, "/") || err == nil && info.Mode().IsRegular()
}
