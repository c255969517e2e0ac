// Package term owns what commands do with terminals: whether a stream is one, tables, the progress of work on one line,
// and escapes for bytes that a terminal would interpret. Without a terminal, progress has no effect: pipes and files get plain
// text.
package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// Is reports whether an output is a terminal.
func Is(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// Sequences around lines of which a terminal shows what fits its width.
const (
	NoWrap = "\x1b[?7l"
	Wrap   = "\x1b[?7h"
)
