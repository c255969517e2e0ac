package term

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a table of columns that are separated by two spaces; each character counts as one wide. What a terminal is too narrow for in the last column is printed below its row.
type Table struct {
	console Console
	rows    []*Row // the first is the headings
}

// Row is a row of a table.
type Row struct {
	texts  []string
	colors []Color
}

const (
	gap = 2
	// indent is the indentation of what is below its row.
	indent = 4
)

// NewTable returns a table with headings, of which the last may be empty. Texts must have been escaped.
func NewTable(c Console, headings ...string) *Table {
	head := &Row{texts: headings, colors: slices.Repeat([]Color{Bold}, len(headings))}
	return &Table{console: c, rows: []*Row{head}}
}

// Row adds a row of as many texts as there are headings.
func (t *Table) Row(texts ...string) *Row {
	r := &Row{texts: texts, colors: make([]Color, len(texts))}
	t.rows = append(t.rows, r)
	return r
}

// Color sets the color of a column of the row.
func (r *Row) Color(column int, c Color) *Row {
	r.colors[column] = c
	return r
}

// Flush prints the table, without spaces at the ends of its lines.
func (t *Table) Flush() error {
	last := len(t.rows[0].texts) - 1
	widths, room := make([]int, last+1), t.console.Width-gap*last // room is what a line has for the last column
	for i := range last {
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r.texts[i]))
		}
		room -= widths[i]
	}
	var b bytes.Buffer
	for _, r := range t.rows {
		spaces := 0
		for i, text := range r.texts {
			painted := t.console.Paint(r.colors[i], text)
			switch {
			case text == "":
			case i == last && t.console.Width > 0 && utf8.RuneCountInString(text) > room:
				b.WriteString("\n" + strings.Repeat(" ", indent) + painted)
			default:
				b.WriteString(strings.Repeat(" ", spaces) + painted)
				spaces = 0
			}
			spaces += widths[i] - utf8.RuneCountInString(text) + gap
		}
		b.WriteByte('\n')
	}
	_, err := t.console.Out.Write(b.Bytes())
	return err
}
