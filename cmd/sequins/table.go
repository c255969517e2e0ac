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

// table is lines of columns.
type table struct {
	out  io.Writer
	text bytes.Buffer
	w    *tabwriter.Writer
}

// newTable begins a table with its headings; no columns' text may have a tab or a line's end in it.
func newTable(out io.Writer, headings ...string) *table {
	t := &table{out: out}
	t.w = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	t.row(headings...)
	return t
}

func (t *table) row(columns ...string) {
	// It goes into memory, so there is nothing that could fail.
	_, _ = fmt.Fprintln(t.w, strings.Join(columns, "\t"))
}

// flush prints the table, without the spaces that stand for empty columns at a line's end.
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

// plain makes text from elsewhere fit for one line of a terminal.
func plain(s string) string { return escape([]byte(s)) }

// number renders 1234567 as 1,234,567, and nothing as a dash.
func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return human.Count(n)
}

// size renders bytes in powers of 1024, and nothing as a dash.
func size(n int64) string {
	if n == 0 {
		return "-"
	}
	return human.Size(n)
}

// day renders a time to the minute, and none as a dash.
func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04")
}
