package blocks

import "io"

// copySpan is how many bytes of a file CopyTo reads at a time.
const copySpan = 256 << 10

// CopyTo writes the file of the block to w, as it is, from its beginning to its end. It calls wait before every read with
// its length in bytes, and leaves what of the file is in memory as it finds it, as Scrub does. Nothing is checked:
// whoever receives the file calls VerifyKeys. Errors are those of w, of wait, of the disk, or ErrBusy.
func (r *Reader) CopyTo(w io.Writer, wait func(bytes int) error) error {
	spans := spanReader{pace: wait, scrub: true}
	return spans.each(r, 0, r.size, copySpan, func(b []byte) error {
		_, err := w.Write(b)
		return err
	})
}
