package term

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is a table of columns that are separated by two spaces.
type Table struct{ rows bytes.Buffer }

// NewTable returns a table with headings, of which the last may be empty. Texts must have been escaped.
func NewTable(headings ...string) *Table {
	t := new(Table)
	t.Row(headings...)
	return t
}

// Row adds a row of as many texts as there are headings.
func (t *Table) Row(texts ...string) { fmt.Fprintln(&t.rows, strings.Join(texts, "\t")) }

// String returns the lines of the table, without spaces at their ends.
func (t *Table) String() string {
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	_, _ = w.Write(t.rows.Bytes()) // a buffer takes everything
	_ = w.Flush()
	var lines strings.Builder
	for line := range bytes.Lines(aligned.Bytes()) {
		fmt.Fprintf(&lines, "%s\n", bytes.TrimRight(line, " \n"))
	}
	return lines.String()
}
