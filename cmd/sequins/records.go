package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

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
	DB      string `json:"db,omitempty"`
	Version string `json:"version,omitempty"`
	File    string `json:"file,omitempty"`

	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
	Absent      bool    `json:"absent,omitempty"`
	Deleted     bool    `json:"deleted,omitempty"`
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

// newOutput returns the progress of a command that prints data, and the writer for these. If that is a terminal, what is
// printed removes the progress.
func newOutput(cmd *cobra.Command, p *term.Progress) (*term.Progress, io.Writer) {
	if term.Is(cmd.OutOrStdout()) {
		return p, &afterProgress{cmd.OutOrStdout(), p}
	}
	return p, cmd.OutOrStdout()
}

// afterProgress is a writer that removes the progress from the terminal before it writes.
type afterProgress struct {
	io.Writer
	p *term.Progress
}

// Write implements io.Writer.
func (w *afterProgress) Write(p []byte) (int, error) {
	w.p.Stop()
	return w.Writer.Write(p)
}

// A recordPrinter prints records, each on a line.
type recordPrinter struct {
	out     *bufio.Writer
	escaped *term.Escaper // of out
	json    bool
	keyless bool
}

func newRecordPrinter(out io.Writer, asJSON bool) *recordPrinter {
	w := bufio.NewWriterSize(out, 64<<10)
	return &recordPrinter{out: w, escaped: term.NewEscaper(w), json: asJSON}
}

// record prints a record. It relies on out, which fails for good once it has failed.
func (p *recordPrinter) record(key []byte, value func(io.Writer) error) error {
	if !p.json {
		if p.keyless {
			return p.text(nil, value)
		}
		return p.text(key, func(w io.Writer) error { return cmp.Or(p.out.WriteByte('\t'), value(w)) })
	}
	var b bytes.Buffer
	if err := value(&b); err != nil {
		return err
	}
	r := record{}.withValue(b.Bytes())
	if !p.keyless {
		r = r.withKey(key)
	}
	return printJSON(p.out, r)
}

// key prints a key without a value; as says what else there is in JSON.
func (p *recordPrinter) key(key []byte, as record) error {
	if p.json {
		return printJSON(p.out, as.withKey(key))
	}
	return p.text(key, func(io.Writer) error { return nil })
}

// text prints a key, escaped, and what value writes.
func (p *recordPrinter) text(key []byte, value func(io.Writer) error) error {
	e := p.escaped
	_, err := e.Write(key)
	return cmp.Or(err, e.Flush(), value(e), e.Flush(), p.out.WriteByte('\n'))
}
