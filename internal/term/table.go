package term

import (
	"bytes"
	"slices"
	"strings"
)

// Table is a table of columns that are separated by two spaces. On a terminal that is too narrow for it, notes, which are a
// last column without a heading, are printed below their rows, and the widest columns are broken into several lines.
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
	narrowest = 8
	// indent is the indentation of a note below its row.
	indent = 4
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
	rows := append([]*Row{head}, t.rows...)
	widths, total := natural(rows)
	below := t.console.Width > 0 && total > t.console.Width && t.headings[len(widths)-1] == ""
	if below {
		widths = widths[:len(widths)-1]
	}
	t.narrow(widths)
	var b bytes.Buffer
	for _, r := range rows {
		t.print(&b, r, widths)
		if last := len(r.texts) - 1; below && r.texts[last] != "" {
			for _, line := range Wrap(r.texts[last], t.console.Width-indent) {
				b.WriteString(strings.Repeat(" ", indent) + t.console.Paint(r.colors[last], line) + "\n")
			}
		}
	}
	_, err := t.console.Out.Write(b.Bytes())
	return err
}

// natural returns the widths of the columns, and that of the table.
func natural(rows []*Row) (widths []int, total int) {
	widths = make([]int, len(rows[0].texts))
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], Columns(r.texts[i]))
		}
		total += widths[i]
	}
	return widths, total + gap*(len(widths)-1)
}

// narrow narrows the widest columns until the table fits, if it can.
func (t *Table) narrow(widths []int) {
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; t.console.Width > 0 && total > t.console.Width; total-- {
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
	}
}

// print prints a row, without spaces at the ends of its lines.
func (t *Table) print(b *bytes.Buffer, r *Row, widths []int) {
	cells, lines := make([][]string, len(widths)), 1
	for i, text := range r.texts[:len(widths)] {
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
