package top

import (
	"bytes"
	"unicode/utf8"
)

// Key is a key: a character, or one of the constants.
type Key rune

// Keys that are no characters of their own are negative.
const (
	CtrlC     Key = 3
	CtrlU     Key = 21
	CtrlZ     Key = 26
	Enter     Key = '\r'
	Backspace Key = 127
	Escape    Key = -iota
	Up
	Down
	Home
	End
	PageUp
	PageDown
	Unknown
)

// sequences are the keys that terminals send as several bytes.
var sequences = map[string]Key{
	"\x1b[A": Up, "\x1b[B": Down, "\x1bOA": Up, "\x1bOB": Down, "\x1b[5~": PageUp, "\x1b[6~": PageDown,
	"\x1b[H": Home, "\x1b[F": End, "\x1bOH": Home, "\x1bOF": End, "\x1b[1~": Home, "\x1b[4~": End,
}

// keys returns the keys in what a terminal has sent, and what may be the beginning of another one. If last is true,
// nothing follows.
func keys(in []byte, last bool) (all []Key, rest []byte) {
	for len(in) > 0 {
		n, k := 0, Unknown
		if in[0] == 0x1b {
			n, k = sequence(in, last)
		} else if utf8.FullRune(in) || last {
			var r rune
			r, n = utf8.DecodeRune(in)
			switch r {
			case '\n':
				k = Enter
			case 8:
				k = Backspace
			case utf8.RuneError:
			default:
				k = Key(r)
			}
		}
		if n == 0 {
			return all, in
		}
		all = append(all, k)
		in = in[n:]
	}
	return all, nil
}

// maxSequence limits a sequence, in bytes; longer ones end there.
const maxSequence = 16

// sequence returns the length and the key of a sequence that begins with an escape; 0 if it is not complete.
func sequence(in []byte, last bool) (int, Key) {
	if len(in) == 1 {
		if last {
			return 1, Escape
		}
		return 0, Unknown
	}
	if in[1] != '[' && in[1] != 'O' { // the key, and another one
		return 1, Escape
	}
	end := bytes.IndexFunc(in[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	switch {
	case end >= 0 && end < maxSequence:
		n := 2 + end + 1
		if k, known := sequences[string(in[:n])]; known {
			return n, k
		}
		return n, Unknown
	case last || len(in) > maxSequence:
		return len(in), Unknown
	}
	return 0, Unknown
}
