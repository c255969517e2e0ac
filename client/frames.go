package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"sequins/internal/term"
	"sequins/internal/wire"
)

// Stream is the value of a key, which is read while the node sends it.
type Stream struct {
	io.ReadCloser
	// Version is the version that it is from.
	Version string
}

// Get returns the value of a key. The error is of the kind ErrNotFound if the version does not have it.
func (c *Node) Get(ctx context.Context, db string, key []byte, want Want) (*Stream, error) {
	if len(key) == 0 { // has no path of its own
		return c.getEmpty(ctx, db, want)
	}
	a, err := c.get(ctx, db, request{url: pathOf(url.PathEscape(db), key), want: want})
	if err != nil {
		return nil, err
	}
	version := a.header.Get(wire.Version)
	if version == "" {
		return nil, errors.Join(&NodeError{Kind: ErrStrange, URL: c.shown, text: notSequins}, a.body.Close())
	}
	return &Stream{a.body, version}, nil
}

// getEmpty is Get for the empty key.
func (c *Node) getEmpty(ctx context.Context, db string, want Want) (*Stream, error) {
	b, err := c.MultiGet(ctx, db, [][]byte{{}}, want)
	if err != nil {
		return nil, err
	}
	if !b.Next() || !b.Found() {
		err := b.Err()
		if err == nil {
			err = &NodeError{Kind: ErrNotFound, URL: c.shown, Version: b.Version, text: "has no such key in version " + term.Escape([]byte(b.Version)) + " of " + db}
		}
		return nil, errors.Join(err, b.Close())
	}
	return &Stream{struct {
		io.Reader
		io.Closer
	}{b.Value(), b}, b.Version}, nil
}

// MultiGet returns the values of several keys, all from one version.
func (c *Node) MultiGet(ctx context.Context, db string, keys [][]byte, want Want) (*Values, error) {
	body, err := encodeBatch(keys)
	if err != nil {
		return nil, err
	}
	a, err := c.get(ctx, db, request{url: "/" + url.PathEscape(db), accept: wire.Bytes, body: body, want: want})
	if err != nil {
		return nil, err
	}
	frames, err := c.frames(a)
	if err != nil {
		return nil, err
	}
	return &Values{frames: *frames, left: len(keys)}, nil
}

// Values is the answer for several keys.
type Values struct {
	frames
	left  int
	found bool
}

// Next goes to the value of the next key. It returns false after the last, and after an error.
func (b *Values) Next() bool {
	if b.left == 0 {
		b.finish()
	}
	if b.err != nil || b.left == 0 {
		return false
	}
	b.left--
	n, ok := b.next()
	if b.found = ok && n != wire.Absent; b.found {
		b.begin(int64(n))
	}
	return ok
}

// Found reports whether the version has the key.
func (b *Values) Found() bool { return b.found }

// frames are the lengths and bytes in an answer.
type frames struct {
	// Version is the version that they are from.
	Version string

	from  *Node
	body  *body
	in    *bufio.Reader
	value io.LimitedReader // what is left of the current value
	err   error

	finished bool // nothing follows
}

// frames returns the frames in the body of an answer.
func (c *Node) frames(a *response) (*frames, error) {
	f := &frames{Version: a.header.Get(wire.Version), from: c, body: a.body, in: bufio.NewReaderSize(a.body, 64<<10)}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if f.Version == "" || media != wire.Bytes {
		return nil, errors.Join(f.strange(notSequins), a.body.Close())
	}
	return f, nil
}

// Err returns why Next has ended; nil at the end of a complete answer.
func (f *frames) Err() error { return f.err }

// Value returns the current value, until Next.
func (f *frames) Value() io.Reader { return (*frameReader)(f) }

// Close ends the request.
func (f *frames) Close() error { return f.body.Close() }

// frameReader reads the current value.
type frameReader frames

// Read implements io.Reader. A value that ends early is an error.
func (r *frameReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.value.Read(p)
	if err == io.EOF && r.value.N > 0 {
		r.err = r.from.ended(io.ErrUnexpectedEOF)
		return n, r.err
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// WriteTo implements io.WriterTo, without a buffer of its own.
func (r *frameReader) WriteTo(w io.Writer) (n int64, err error) {
	for r.err == nil && r.value.N > 0 {
		if _, err := r.in.Peek(1); err != nil {
			r.err = r.from.ended(err)
			break
		}
		b, _ := r.in.Peek(int(min(r.value.N, int64(r.in.Buffered())))) // they are there
		m, err := w.Write(b)
		_, _ = r.in.Discard(m)
		r.value.N -= int64(m)
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, r.err
}

// begin begins a value of n bytes.
func (f *frames) begin(n int64) { f.value = io.LimitedReader{R: f.in, N: n} }

// next passes over what is left of the value and returns the next length.
func (f *frames) next() (length uint32, ok bool) {
	f.skip()
	if f.err != nil {
		return 0, false
	}
	length, err := wire.ReadLength(f.in)
	if err != nil {
		f.err = f.from.ended(err)
	}
	return length, err == nil
}

// skip passes over what is left of the value.
func (f *frames) skip() {
	if f.value.N > 0 && f.err == nil {
		_, _ = io.Copy(io.Discard, f.Value()) // the error is in f
	}
}

// finish checks that nothing follows the value.
func (f *frames) finish() {
	if f.skip(); f.err != nil || f.finished {
		return
	}
	f.finished = true
	if _, err := f.in.ReadByte(); err == nil {
		f.err = f.strange("sends more than was asked for")
	} else if err != io.EOF {
		f.err = f.from.ended(err)
	}
}

func (f *frames) strange(text string) error {
	return &NodeError{Kind: ErrStrange, URL: f.from.shown, text: text}
}

// ended returns the error for an answer that ended in the middle.
func (c *Node) ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.brokenOff(err)
	}
	return err
}
