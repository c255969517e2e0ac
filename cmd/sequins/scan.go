package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/human"
	"sequins/internal/term"
)

type scanFlags struct {
	node                    nodeFlags
	prefix, start, end      string
	after                   string
	limit                   int64
	keysOnly, json, escaped bool
	atLeast                 string
}

func scanCommand() *cobra.Command {
	var f scanFlags
	cmd := &cobra.Command{
		Use:   "scan DB",
		Short: "Print records of a running sequins in the order of their keys, from one version",
		Long: `Print the records of a database, or of a range of it, in the order of the bytes of
their keys, all from one version, each on a line: key, tab, value, escaped as by
cat. Records are printed as they arrive, however many there are.

` + nodeHelp + `

With --limit, the place to go on from is printed on standard error, as a
cursor for --after.

With --json each line is an object with "key" and "value", or "key_base64" and
"value_base64" where they are not UTF-8; the last one has "version", "records" and
"cursor". Without it, an answer was not complete.

Exits with 3 if the database, or the version of the cursor, does not exist, 5 if
the node does not answer or breaks off, and 6 if a record cannot be read.`,
		Example: `  sequins scan words --prefix ap --server http://node1:9599
  sequins scan words --start m --end n --keys-only --server node1:9599 | wc -l
  curl 'http://node1:9599/words?count&prefix=ap'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := f.bounds(cmd)
			if err != nil {
				return err
			}
			return f.node.ask(cmd, args, func(c *client.Node) error {
				return f.print(cmd, c, args[0], g)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.prefix, "prefix", "", "only keys that begin with this `text`")
	flags.StringVar(&f.start, "start", "", "only keys from this `key` on")
	flags.StringVar(&f.end, "end", "", "only keys less than this `key`")
	flags.Int64Var(&f.limit, "limit", 0, "at most so many records (default all)")
	flags.StringVar(&f.after, "after", "", "go on from a `cursor`")
	flags.BoolVar(&f.keysOnly, "keys-only", false, "print no values")
	registerEscaped(cmd, &f.escaped, "--prefix, --start and --end are")
	flags.BoolVar(&f.json, "json", false, "write JSON, one object per line")
	registerAtLeast(cmd, &f.atLeast)
	f.node.register(cmd)
	return cmd
}

func (f *scanFlags) bounds(cmd *cobra.Command) (g client.Range, err error) {
	if f.limit < 0 || f.limit == 0 && cmd.Flags().Changed("limit") {
		return g, usageError(errors.New("--limit must be at least 1"))
	}
	if f.after == "" && cmd.Flags().Changed("after") {
		return g, usageError(errors.New("--after is empty: leave it out to begin at the start of the range"))
	}
	g = client.Range{Limit: f.limit, After: f.after, KeysOnly: f.keysOnly}
	for name, bound := range map[string]struct {
		text string
		key  *[]byte
	}{"prefix": {f.prefix, &g.Prefix}, "start": {f.start, &g.Start}, "end": {f.end, &g.End}} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if *bound.key, err = parseKey(bound.text, f.escaped); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (f *scanFlags) print(cmd *cobra.Command, c *client.Node, db string, g client.Range) error {
	s, err := c.Scan(cmd.Context(), db, g, client.Want{AtLeast: f.atLeast})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it is only read
	out := newRecordPrinter(cmd.OutOrStdout(), f.json)
	var n int64
	for ; s.Next(); n++ {
		if f.keysOnly {
			err = out.key(s.Key(), record{})
		} else {
			err = out.record(s.Key(), s.WriteValue)
		}
		if err != nil {
			break
		}
	}
	if s.Err() != nil && out.out.Flush() == nil { // otherwise the output has failed
		err = fmt.Errorf("after %s of version %s: %w", human.Plural(int(n), "record"), term.Clean(s.Version), s.Err())
	}
	if err == nil && f.json {
		last := struct {
			Version string  `json:"version"`
			Records int64   `json:"records"`
			Cursor  *string `json:"cursor"`
		}{Version: s.Version, Records: n}
		if cursor := s.Cursor(); cursor != "" {
			last.Cursor = &cursor
		}
		err = printJSON(out.out, last)
	}
	err = cmp.Or(err, out.out.Flush())
	if err == nil && s.Cursor() != "" && !f.json {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "there are more: --after %s\n", s.Cursor())
	}
	return err
}
