package loadproc

import (
	"fmt"
	"strings"
)

// How much of what a process prints is kept, in bytes: the beginning of it, where a Go program says why it
// crashes, and its end.
const (
	keptHead = 3 << 10
	keptTail = 1 << 10
)

// lastWords keeps the beginning and the end of what is written to it.
type lastWords struct {
	head, tail []byte
	cut        bool // there was more between them
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

// quote returns what was printed as the end of an error, "" if there was nothing.
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
