package loadproc

import (
	"fmt"
	"strings"
)

// keptHead and keptTail are the sizes, in bytes, of the kept beginning and end of the output. A Go program
// reports the reason of a crash at the beginning.
const (
	keptHead = 3 << 10
	keptTail = 1 << 10
)

// lastWords keeps the beginning and the end of what is written to it.
type lastWords struct {
	head, tail []byte
	cut        bool // output between head and tail was dropped
}

// Write implements io.Writer.
func (w *lastWords) Write(p []byte) (int, error) {
	n := len(p)
	fits := min(len(p), keptHead-len(w.head))
	w.head = append(w.head, p[:fits]...)
	p = p[fits:]
	if len(p) > keptTail {
		p, w.tail, w.cut = p[len(p)-keptTail:], w.tail[:0], true
	}
	if over := len(w.tail) + len(p) - keptTail; over > 0 {
		w.tail, w.cut = w.tail[:copy(w.tail, w.tail[over:])], true
	}
	w.tail = append(w.tail, p...)
	return n, nil
}

// quote returns the output as the end of an error, "" if there was none.
func (w *lastWords) quote() string {
	between := ""
	if w.cut {
		between = "\n…\n"
	}
	said := strings.TrimSpace(strings.ToValidUTF8(string(w.head)+between+string(w.tail), "?"))
	if said == "" {
		return ""
	}
	return fmt.Sprintf("; its last words: %s", said)
}
