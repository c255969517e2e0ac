package resp

import "strconv"

// replies renders replies in RESP2, or in RESP3 after HELLO 3.
type replies struct {
	out   []byte
	resp3 bool
}

func (w *replies) line(kind byte, s string) {
	w.out = append(append(append(w.out, kind), s...), '\r', '\n')
}

// simple appends a simple string, which must have no line ends.
func (w *replies) simple(s string) { w.line('+', s) }

// fail appends an error: its code, a space and a text. Line ends in it become spaces.
func (w *replies) fail(text string) {
	w.out = append(w.out, '-')
	for i := range len(text) {
		c := text[i]
		if c == '\r' || c == '\n' {
			c = ' '
		}
		w.out = append(w.out, c)
	}
	w.out = append(w.out, '\r', '\n')
}

func (w *replies) header(kind byte, n int64) {
	w.out = append(w.out, kind)
	if 0 <= n && n < 10 {
		w.out = append(w.out, byte('0'+n), '\r', '\n')
		return
	}
	w.out = append(strconv.AppendInt(w.out, n, 10), '\r', '\n')
}

func (w *replies) integer(n int64) { w.header(':', n) }

func (w *replies) bulk(b []byte) {
	w.header('$', int64(len(b)))
	w.out = append(append(w.out, b...), '\r', '\n')
}

func (w *replies) text(s string) {
	w.header('$', int64(len(s)))
	w.out = append(append(w.out, s...), '\r', '\n')
}

func (w *replies) null() {
	if w.resp3 {
		w.out = append(w.out, "_\r\n"...)
	} else {
		w.out = append(w.out, "$-1\r\n"...)
	}
}

func (w *replies) array(n int) { w.header('*', int64(n)) }

func (w *replies) pairs(n int) {
	if w.resp3 {
		w.header('%', int64(n))
	} else {
		w.array(2 * n)
	}
}
