package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sequins/datafile"
)

func getCommand() *cobra.Command {
	var inHex bool
	cmd := &cobra.Command{
		Use:   "get FILE KEY",
		Short: "Print the value of a key in a block, SequenceFile or Sparkey log",
		Long: `Print the value of a key unchanged, without a server.

FILE is a block of the local store, a SequenceFile or a Sparkey log. The index of
a block finds the key; the other files are read from start to end, and the last
record of the key counts. Exits with 1 if the key does not exist.`,
		Example: `  sequins get /var/sequins/data/words/2026-01-31/00003.block apple
  sequins get part-r-00003 --hex 00ff17`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := []byte(args[1])
			if inHex {
				var err error
				if key, err = hex.DecodeString(args[1]); err != nil {
					return usageError{fmt.Errorf("the key is not hexadecimal: %w", err)}
				}
			}
			return get(cmd.OutOrStdout(), args[0], key)
		},
	}
	cmd.Flags().BoolVar(&inHex, "hex", false, "KEY is written in hexadecimal")
	return cmd
}

func get(out io.Writer, path string, key []byte) (err error) {
	f, err := datafile.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found, err := f.Get(key, out)
	if err == nil && !found {
		return fmt.Errorf("%s has no key %s", path, excerpt(key, int64(len(key))))
	}
	return err
}

func catCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat FILE",
		Short: "Print every record of a block, SequenceFile or Sparkey log",
		Long: `Print every record of a file in its order, one per line: key, tab, value. Bytes
that are not printable UTF-8 are written as \xNN, tab, newline and return as \t, \n and \r, a backslash as \\.

With --json each line is an object with "key" and "value", or "key_base64" and
"value_base64" where they are not UTF-8. A key that a Sparkey log deletes has no
value: nothing after the key, or in JSON "deleted": true.`,
		Example: `  sequins cat /var/sequins/data/words/2026-01-31/00003.block | head
  sequins cat --json part-r-00003 | jq .key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cat(cmd.OutOrStdout(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object per line")
	return cmd
}

func cat(stdout io.Writer, path string, asJSON bool) (err error) {
	f, err := datafile.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(stdout, 64<<10)
	write := writeText
	if asJSON {
		write = writeJSON
	}
	for f.Next() {
		if err := write(out, f); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), f.Err())
}

// writeText relies on out, which fails for good once it has failed.
func writeText(out *bufio.Writer, f datafile.File) error {
	e := &escaper{w: out}
	_, err := e.Write(f.Key())
	err = cmp.Or(err, e.Flush())
	if !f.Deleted() {
		err = cmp.Or(err, out.WriteByte('\t'), f.WriteValue(e), e.Flush())
	}
	return cmp.Or(err, out.WriteByte('\n'))
}

func writeJSON(out *bufio.Writer, f datafile.File) error {
	name, text, err := jsonBytes("key", f.Key())
	if err != nil {
		return err
	}
	object := map[string]json.RawMessage{name: text}
	if f.Deleted() {
		object["deleted"] = json.RawMessage("true")
	} else {
		var value bytes.Buffer
		if err := f.WriteValue(&value); err != nil {
			return err
		}
		if name, text, err = jsonBytes("value", value.Bytes()); err != nil {
			return err
		}
		object[name] = text
	}
	line, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}
