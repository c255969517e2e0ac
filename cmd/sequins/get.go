package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sequins/client"
)

func getCommand() *cobra.Command {
	var node nodeFlags
	var escaped, asJSON bool
	var atLeast string
	cmd := &cobra.Command{
		Use:   "get DB {KEY... | -}",
		Short: "Print the values of keys of a running sequins",
		Long: `Print the value of a key unchanged. Of several keys, print the values in their order,
all from one version, each on a line: key, tab, value, escaped as by cat. An absent
key has a line with nothing behind it. With -, the keys are the lines of standard
input, any number of them.

Keys are taken as they are: a backslash is a backslash. With --escaped they are
written as scan, cat and get print them, so that any key can be passed on.

` + nodeHelp + `

The values are from the version that is served, or with --at-least from that one or a
later one. For the values in a file, see cat.

With --json, one key is an object with "db", "version", "key" and "value", or
"key_base64" and "value_base64" where they are not UTF-8. Several have such a line
each, without "db" and "version", with "absent": true for an absent key; the last
line has "version", "keys" and "absent".

Exits with 3 if a key or the database does not exist, 5 if the node does not
answer, and 6 if a value cannot be read.`,
		Example: `  sequins get words apple --server http://node1:9599
  sequins get words apple --json | jq -r .version
  cut -f1 users.tsv | sequins get --json users - --server node1:9599
  sequins scan words --keys-only | sequins get --escaped --server node2:9599 words -`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node) error {
				want := client.Want{AtLeast: atLeast}
				if len(args) > 2 || args[1] == "-" {
					m := &multiGet{client: c, db: args[0], want: want, escaped: escaped, printer: newRecordPrinter(cmd.OutOrStdout(), asJSON)}
					return m.run(cmd.Context(), cmd.InOrStdin(), args[1:])
				}
				key, err := parseKey(args[1], escaped)
				if err != nil {
					return err
				}
				return get(cmd, c, args[0], key, want, asJSON)
			})
		},
	}
	registerEscaped(cmd, &escaped, "keys are")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object for each key")
	registerAtLeast(cmd, &atLeast)
	node.register(cmd)
	return cmd
}

func registerAtLeast(cmd *cobra.Command, version *string) {
	cmd.Flags().StringVar(version, "at-least", "", "read no older `version` than this one")
}

func registerEscaped(cmd *cobra.Command, escaped *bool, what string) {
	cmd.Flags().BoolVar(escaped, "escaped", false, what+` written as scan and cat print keys, such as \x00`)
}

// parseKey returns the key that an argument means. If it is escaped, it is as term.Escape has written it.
func parseKey(text string, escaped bool) ([]byte, error) {
	if !escaped {
		return []byte(text), nil
	}
	key := make([]byte, 0, len(text))
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			return append(key, text...), nil
		}
		key = append(key, text[:i]...)
		escape := text[i+1:]
		r, _, rest, err := strconv.UnquoteChar(text[i:], 0)
		if err != nil || !strings.ContainsRune(`\tnrx`, rune(escape[0])) {
			return nil, usageError(fmt.Errorf(`the key is not escaped: behind a backslash there must be \, t, n, r or xNN, and not %q`, escape[:min(3, len(escape))]))
		}
		key, text = append(key, byte(r)), rest
	}
}

// get prints the value of a key on a node, and in JSON where it is from.
func get(cmd *cobra.Command, c *client.Node, db string, key []byte, want client.Want, asJSON bool) error {
	v, err := c.Get(cmd.Context(), db, key, want)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it is only read
	if !asJSON {
		_, err = io.Copy(cmd.OutOrStdout(), v)
		return err
	}
	value, err := io.ReadAll(v)
	if err != nil {
		return err
	}
	return printJSON(cmd.OutOrStdout(), record{DB: db, Version: v.Version}.withKey(key).withValue(value))
}
