// Package table turns measurements into tables that compare: medians with their spread, and ratios.
//
// Contenders take turns ([Rounds]), so that other work on the machine affects all of them. A ratio is
// the median of the ratios of two contenders in the same round, so a machine that slows down during a
// run changes the times and not the ratios.
package table

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table holds a sample per round for each row and column.
type Table struct {
	title     string
	reference string // the row that ratios refer to; "" for none
	rows      []string
	columns   []column
	samples   map[[2]string][]float64
	notes     []string
}

type column struct {
	name   string
	format string // of one number
	ratio  bool
}

// New makes a table whose ratios say how many times as much as this row the others take.
func New(title, reference string) *Table {
	return &Table{title: title, reference: reference, samples: map[[2]string][]float64{}}
}

// Column appends a column, with how its numbers are written ("%.0f"); ratio asks for the ratio beside them.
func (t *Table) Column(name, format string, ratio bool) *Table {
	t.columns = append(t.columns, column{name, format, ratio})
	return t
}

// Add notes a measurement. The n-th of a row and column is of the n-th round.
func (t *Table) Add(row, column string, value float64) {
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	key := [2]string{row, column}
	t.samples[key] = append(t.samples[key], value)
}

// Note appends a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Median returns the median of a row's samples in a column, 0 without any.
func (t *Table) Median(row, column string) float64 { return median(t.samples[[2]string{row, column}]) }

// Max returns the greatest sample, 0 without any.
func (t *Table) Max(row, column string) float64 {
	return slices.Max(append([]float64{0}, t.samples[[2]string{row, column}]...))
}

// Ratio returns how many times as much as another row this one takes: the median over the rounds. It is 0
// where one of them was not measured.
func (t *Table) Ratio(row, other, column string) float64 {
	a, b := t.samples[[2]string{row, column}], t.samples[[2]string{other, column}]
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return median(ratios)
}

func median(s []float64) float64 {
	if len(s) == 0 {
		return 0
	}
	s = slices.Sorted(slices.Values(s))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// Print writes the table as Markdown.
func (t *Table) Print(w io.Writer) {
	lines := [][]string{{""}}
	for _, c := range t.columns {
		lines[0] = append(lines[0], c.name)
	}
	for _, row := range t.rows {
		line := []string{row}
		for _, c := range t.columns {
			line = append(line, t.cell(row, c))
		}
		lines = append(lines, line)
	}
	fmt.Fprintf(w, "\n### %s\n\n", t.title)
	writeAligned(w, lines)
	for _, n := range t.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}

func (t *Table) cell(row string, c column) string {
	s := t.samples[[2]string{row, c.name}]
	if len(s) == 0 {
		return ""
	}
	number := func(v float64) string { return fmt.Sprintf(c.format, v) }
	cell := number(median(s))
	if low, high := number(slices.Min(s)), number(slices.Max(s)); low != high {
		cell += fmt.Sprintf(" (%s–%s)", low, high)
	}
	if r := t.Ratio(row, t.reference, c.name); c.ratio && r != 0 && row != t.reference {
		cell += fmt.Sprintf(" · %.2f×", r)
	}
	return cell
}

func writeAligned(w io.Writer, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(w, "| %-*s ", widths[i], cell)
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprintf(w, "|%s", strings.Repeat("-", width+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}
