package table

import (
	"fmt"
	"io"
)

// Checks compares measurements with their required values.
type Checks struct {
	lines  [][]string
	missed int
}

// AtMost notes that a measurement must not be above a limit. Nothing is noted for one that was not made, 0.
func (c *Checks) AtMost(what string, got, limit float64) {
	if got != 0 {
		c.add(what, got, "≤", limit, got <= limit)
	}
}

// AtLeast notes that a measurement must not be below a limit.
func (c *Checks) AtLeast(what string, got, limit float64) {
	if got != 0 {
		c.add(what, got, "≥", limit, got >= limit)
	}
}

// Zero notes that something must not have happened at all.
func (c *Checks) Zero(what string, got float64) { c.add(what, got, "=", 0, got == 0) }

func (c *Checks) add(what string, got float64, sign string, limit float64, met bool) {
	verdict := "met"
	if !met {
		verdict = "**missed**"
		c.missed++
	}
	c.lines = append(c.lines, []string{what, fmt.Sprintf("%.3g", got), fmt.Sprintf("%s %g", sign, limit), verdict})
}

// Missed is how many were not met.
func (c *Checks) Missed() int { return c.missed }

// Print writes the checks as a Markdown table.
func (c *Checks) Print(w io.Writer) {
	if len(c.lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### What must hold\n\n")
	writeAligned(w, append([][]string{{"", "measured", "must be", ""}}, c.lines...))
}
