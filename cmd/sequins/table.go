package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"sequins/internal/human"
)

// table formats lines of columns.
type table struct {
	out  io.Writer
	text bytes.Buffer
	w    *tabwriter.Writer
}

// newTable creates a table with headings. Columns must not contain tabs or line ends.
func newTable(out io.Writer, headings ...string) *table {
	t := &table{out: out}
	t.w = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	t.row(headings...)
	return t
}

func (t *table) row(columns ...string) {
	// Writing to memory cannot fail.
	_, _ = fmt.Fprintln(t.w, strings.Join(columns, "\t"))
}

// flush prints the table without trailing spaces.
func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// plain escapes external text for one line of a terminal.
func plain(s string) string { return escape([]byte(s)) }

// number formats 1234567 as 1,234,567, and 0 as a dash.
func number(n int64) string { return dashIf(n == 0, human.Count(n)) }

// size formats bytes in powers of 1024, and 0 as a dash.
func size(n int64) string { return dashIf(n == 0, human.Size(n)) }

// day formats a time to the minute, and a zero time as a dash.
func day(t time.Time) string { return dashIf(t.IsZero(), t.UTC().Format("2006-01-02 15:04")) }

func dashIf(empty bool, text string) string {
	if empty {
		return "-"
	}
	return text
}
