// Package http1 owns what both ends of a connection need to know of how HTTP/1 is framed. A header passes
// through while it arrives: server and proxy read into buffers of their own, and ask after each read whether
// it is whole.
package http1

import "bytes"

// HeaderEnd is the length of the header at the beginning of b, 0 if it is not whole: it ends with an empty
// line. Lines end with LF or CR LF. The first searched bytes are known to hold no end.
func HeaderEnd(b []byte, searched int) int {
	for i := max(0, searched-3); ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		if i < len(b) && b[i] == '\n' {
			return i + 1
		}
		if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
			return i + 2
		}
	}
}
