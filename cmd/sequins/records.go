package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sequins/internal/human"
	"sequins/internal/term"
)

// printJSON prints a value on a line, without escapes for HTML.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// record is a record as JSON. Bytes that are not UTF-8 are base64 under another name.
type record struct {
	DB          string  `json:"db,omitempty"`
	Version     string  `json:"version,omitempty"`
	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
	Deleted     bool    `json:"deleted,omitempty"`
	Absent      bool    `json:"absent,omitempty"`
}

func (r record) withKey(key []byte) record {
	r.Key, r.KeyBase64 = textOrBytes(key)
	return r
}

func (r record) withValue(value []byte) record {
	r.Value, r.ValueBase64 = textOrBytes(value)
	return r
}

func textOrBytes(b []byte) (*string, []byte) {
	if utf8.Valid(b) {
		text := string(b)
		return &text, nil
	}
	return nil, b
}

// A recordPrinter prints records, each on a line.
type recordPrinter struct {
	out     *bufio.Writer
	json    bool
	keyless bool

	value bytes.Buffer // of the current record
	line  []byte
}

func newRecordPrinter(out io.Writer, asJSON bool) *recordPrinter {
	return &recordPrinter{out: bufio.NewWriterSize(out, 64<<10), json: asJSON}
}

func (p *recordPrinter) record(key []byte, value func(io.Writer) error) error {
	p.value.Reset()
	if err := value(&p.value); err != nil {
		return err
	}
	if p.json {
		r := record{}.withValue(p.value.Bytes())
		if !p.keyless {
			r = r.withKey(key)
		}
		return printJSON(p.out, r)
	}
	p.line = p.line[:0]
	if !p.keyless {
		p.line = append(term.AppendEscaped(p.line, key), '\t')
	}
	return p.end(term.AppendEscaped(p.line, p.value.Bytes()))
}

// key prints a key without a value; as says what else there is in JSON.
func (p *recordPrinter) key(key []byte, as record) error {
	if p.json {
		return printJSON(p.out, as.withKey(key))
	}
	return p.end(term.AppendEscaped(p.line[:0], key))
}

func (p *recordPrinter) end(line []byte) error {
	p.line = append(line, '\n')
	_, err := p.out.Write(p.line)
	return err
}

func catCommand() *cobra.Command {
	var f fileFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat FILE",
		Short: "Print every record of a file",
		Long: `Print every record of a block, a SequenceFile, a Sparkey log, an Avro or a Parquet
file in its order, one per line: key, tab, value. Bytes that are not printable
UTF-8 are written as \xNN, tab, newline and return as \t, \n and \r, a backslash
as \\. Without the field of the key, records of Avro and Parquet are printed
without keys.

With --json each line is an object with "key" and "value", or "key_base64" and
"value_base64" where they are not UTF-8. A key that a Sparkey log deletes has no
value: nothing after the key, or in JSON "deleted": true.` + fieldHelp + `

Records whose key is null, or whose key or value is too long, are left out, with
a warning. A file of a remote source is copied by the source's own tool first.

Exits with 3 if there is no such file, and 6 if it cannot be read.`,
		Example: `  sequins cat /var/sequins/data/words/2026-01-31/*/00003.block | head
  sequins cat --json part-r-00003 | jq .key
  sequins cat --key word --value meaning part-00003.parquet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.cat(cmd, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object per line")
	f.register(cmd)
	return cmd
}

func (f *fileFlags) cat(cmd *cobra.Command, path string, asJSON bool) (err error) {
	if isRemote(path) {
		return usageError(fmt.Errorf("%s is not a file of this machine: copy it with hdfs dfs -get, aws s3 cp, gcloud storage cp or azcopy copy", path))
	}
	if err := f.load(); err != nil {
		return err
	}
	d := localFile(path)
	file, err := f.open(d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p := newRecordPrinter(cmd.OutOrStdout(), asJSON)
	p.keyless = file.Keyless()
	if err := p.all(file); err != nil {
		return d.failed(err)
	}
	if n, first := file.LeftOut(); n > 0 {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "left out: %s, the first as %v\n", human.Plural(int(n), "record"), first)
	}
	return err
}

func (p *recordPrinter) all(f openData) error {
	for f.Next() {
		var err error
		if f.Deleted() {
			err = p.key(f.Key(), record{Deleted: true})
		} else {
			err = p.record(f.Key(), f.WriteValue)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(p.out.Flush(), f.Err())
}
