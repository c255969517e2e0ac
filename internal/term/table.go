package term

import (
	"bytes"
	"slices"
	"strings"
)

// Table is a table of columns that are separated by two spaces. On a terminal that is too narrow for it, the widest columns
// are broken into several lines.
type Table struct {
	console  Console
	headings []string
	rows     []*Row
}

// Row is a row of a table.
type Row struct {
	texts  []string
	colors []Color
}

const (
	gap = 2
	// narrowest is the width to which a column is not narrowed any more.
	narrowest = 10
)

// NewTable returns a table with headings, of which the last may be empty. Texts must have been escaped.
func NewTable(c Console, headings ...string) *Table {
	return &Table{console: c, headings: headings}
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

// Flush prints the table.
func (t *Table) Flush() error {
	head := &Row{texts: t.headings, colors: slices.Repeat([]Color{Bold}, len(t.headings))}
	widths := t.widths(head)
	var b bytes.Buffer
	for _, r := range append([]*Row{head}, t.rows...) {
		t.print(&b, r, widths)
	}
	_, err := t.console.Out.Write(b.Bytes())
	return err
}

// widths returns the widths of the columns.
func (t *Table) widths(head *Row) []int {
	widths := make([]int, len(t.headings))
	total := gap * (len(widths) - 1)
	for i := range widths {
		for _, r := range append([]*Row{head}, t.rows...) {
			widths[i] = max(widths[i], Columns(r.texts[i]))
		}
		total += widths[i]
	}
	for t.console.Width > 0 && total > t.console.Width {
		widest := 0
		for i, w := range widths {
			if w >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

// print prints a row, without spaces at the ends of its lines.
func (t *Table) print(b *bytes.Buffer, r *Row, widths []int) {
	cells, lines := make([][]string, len(widths)), 1
	for i, text := range r.texts {
		cells[i] = Wrap(text, widths[i])
		lines = max(lines, len(cells[i]))
	}
	for line := range lines {
		spaces := 0
		for i, cell := range cells {
			text := ""
			if line < len(cell) {
				text = cell[line]
			}
			if text != "" {
				b.WriteString(strings.Repeat(" ", spaces) + t.console.Paint(r.colors[i], text))
				spaces = 0
			}
			spaces += widths[i] - Columns(text) + gap
		}
		b.WriteByte('\n')
	}
}
