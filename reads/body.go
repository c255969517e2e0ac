package reads

import (
	"errors"
	"io"
	"time"

	"sequins/blocks"
)

// Body reads a value. A local value can be read at any offset, with Seek; the answer of a peer, only once,
// from beginning to end. After an error of Read, Outcome is the reason.
type Body struct {
	// Outcome is Found, or why Read failed: Unreadable, Unreachable or TooSlow.
	Outcome Outcome

	r       *Read
	value   blocks.Value  // of a local value
	section io.ReadCloser // reads value from off; nil until the first Read
	off     int64
	sent    int64
	began   time.Time
	err     error
}

// After leavingGrace, a client of a version that is being removed must have read leavingRate bytes per second
// on average. The version's files cannot be deleted before the client is done.
const (
	leavingRate  = 32 << 10
	leavingGrace = 10 * time.Second
)

var errTooSlow = errors.New("the version has been replaced, and the client reads too slowly")

// Body returns the value after Do returned Found.
func (r *Read) Body() *Body { return &r.body }

// Read implements io.Reader. An error of a local block is logged and reported to the version's owner; damage
// wraps blocks.ErrCorrupt.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.tooSlow() {
		return 0, b.fail(errTooSlow)
	}
	var source io.Reader = b.r.answered
	if b.r.answered == nil {
		if b.section == nil {
			b.section = b.value.Section(b.off, b.value.Len()-b.off)
		}
		source = b.section
	}
	n, err := source.Read(p)
	b.off, b.sent = b.off+int64(n), b.sent+int64(n)
	if err != nil && err != io.EOF {
		err = b.fail(err)
	}
	return n, err
}

// Seek implements io.Seeker for a local value.
func (b *Body) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.off
	case io.SeekEnd:
		offset += b.value.Len()
	}
	if offset < 0 || offset > b.value.Len() {
		return 0, errors.New("seeking outside of the value")
	}
	if offset != b.off {
		b.close()
		b.off = offset
	}
	return offset, nil
}

// tooSlow reports whether the client delays the removal of the version for too long.
func (b *Body) tooSlow() bool {
	late := time.Since(b.began) - leavingGrace
	return late > 0 && b.r.answered == nil && float64(b.sent) < late.Seconds()*leavingRate && b.r.handle.Leaving()
}

// fail stores and logs the error that ends the body.
func (b *Body) fail(err error) error {
	r := b.r
	b.err = err
	switch {
	case errors.Is(err, errTooSlow):
		b.Outcome = TooSlow
		r.reader.log.Error("a client was cut off", "target", r.target(), "version", r.handle.Version(), "error", err)
	case r.answered != nil:
		b.Outcome = Unreachable
		r.reader.log.Error("reading a peer's answer", "target", r.target(), "error", err)
	default:
		b.Outcome = Unreadable
		r.handle.Report(r.partition, b.value.Reader(), err)
		r.logUnreadable(err)
	}
	return err
}

// close returns the buffers of the section.
func (b *Body) close() {
	if b.section != nil {
		b.section.Close() //nolint:errcheck // it was only read from
		b.section = nil
	}
}
