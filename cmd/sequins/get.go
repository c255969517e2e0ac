package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/term"
)

func getCommand() *cobra.Command {
	var node nodeFlags
	var escaped, asJSON bool
	var atLeast string
	cmd := &cobra.Command{
		Use:   "get DB KEY",
		Short: "Print the value of a key of a running sequins",
		Long: `Print the value of a key unchanged.

` + nodeHelp + `

The value is from the version that is served, or with --at-least from that one or a
later one. For the values in a file, see cat.

Exits with 3 if the key or the database does not exist, 5 if the node does not
answer, and 6 if the value cannot be read.`,
		Example: `  sequins get words apple --server http://node1:9599
  sequins get words apple --json | jq -r .version`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node) error {
				key, err := parseKey(args[1], escaped)
				if err != nil {
					return err
				}
				return get(cmd, c, args[0], key, client.Want{AtLeast: atLeast}, asJSON)
			})
		},
	}
	registerEscaped(cmd, &escaped, "KEY is")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"key", "value"} and where it is from as JSON`)
	registerAtLeast(cmd, &atLeast)
	node.register(cmd)
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

// parseKey returns the key that an argument means. If it is escaped, it is as term.Escape has written it.
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

// get prints the value of a key on a node, and in JSON where it is from.
func get(cmd *cobra.Command, c *client.Node, db string, key []byte, want client.Want, asJSON bool) error {
	v, err := c.Get(cmd.Context(), db, key, want)
	if errors.Is(err, client.ErrNotFound) {
		var no *client.NodeError
		errors.As(err, &no)
		return withCode(exitAbsent, fmt.Errorf("version %s of %s has no key %s", term.Clean(no.Version), db, term.Excerpt(key, int64(len(key)))))
	}
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
