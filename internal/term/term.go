// Package term owns what commands do with terminals: whether a stream is one, its width, colors, tables,
// the progress of work on one line, and escapes for bytes that a terminal would interpret. Without a terminal, nothing
// of it but the escapes has an effect: pipes and files get plain text without progress.
package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// Console is where a command prints.
type Console struct {
	Out io.Writer
	// Width is the number of columns of a terminal, 0 of anything else.
	Width int
	// Colors reports whether colors are used.
	Colors bool
}

// NewConsole returns the console of an output. Colors are used on terminals, unless NO_COLOR is set or TERM is dumb, and
// elsewhere if CLICOLOR_FORCE is set and not 0.
func NewConsole(out io.Writer) Console {
	c := Console{Out: out}
	if f, ok := terminal(out); ok {
		c.Width, _, _ = xterm.GetSize(int(f.Fd()))
		c.Colors = os.Getenv("TERM") != "dumb"
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		c.Colors = true
	}
	if os.Getenv("NO_COLOR") != "" {
		c.Colors = false
	}
	return c
}

// To returns a console with the properties of c that prints elsewhere, such as into a page that is shown later.
func (c Console) To(out io.Writer) Console {
	c.Out = out
	return c
}

// Is reports whether an output is a terminal.
func Is(out io.Writer) bool {
	_, ok := terminal(out)
	return ok
}

func terminal(out io.Writer) (*os.File, bool) {
	f, ok := out.(*os.File)
	return f, ok && xterm.IsTerminal(int(f.Fd()))
}

// Color is a color or another attribute of text. It always stands beside a word that says the same.
type Color string

// The colors are those of the first sixteen, which people set up to be readable.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Dim    Color = "2"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)

// Paint returns a text in a color, if colors are used.
func (c Console) Paint(color Color, text string) string {
	if !c.Colors || color == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
}

// Sequences around lines of which a terminal shows what fits its width.
const (
	NoWrap = "\x1b[?7l"
	Wrap   = "\x1b[?7h"
)
