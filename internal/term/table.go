package term

import (
	"bytes"
	"fmt"
	"io"
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

// Print prints the table, without spaces at the ends of its lines.
func (t *Table) Print(out io.Writer) error {
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	_, _ = w.Write(t.rows.Bytes()) // a buffer takes everything
	_ = w.Flush()
	for line := range bytes.Lines(aligned.Bytes()) {
		if _, err := fmt.Fprintf(out, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
