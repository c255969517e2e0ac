package nodeapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strings"

	"sequins/internal/term"
)

// maxKey is the maximum length of a key in bytes.
const maxKey = 64 << 10

// Value is the value of a key, which is read while the node sends it.
type Value struct {
	io.ReadCloser
	// Version is the version that it is from.
	Version string
}

// Get returns the value of a key. The error is of the kind NoKey if the version does not have it.
func (c *Client) Get(ctx context.Context, db string, key []byte, want Want) (*Value, error) {
	if len(key) == 0 { // has no path of its own
		return c.getEmpty(ctx, db, want)
	}
	a, err := c.get(ctx, db, request{path: "/" + url.PathEscape(db) + "/" + escapeKey(key), want: want})
	if err != nil {
		return nil, err
	}
	version := a.header.Get("X-Sequins-Version")
	if version == "" {
		return nil, errors.Join(&Error{Kind: Strange, URL: c.shown, text: notSequins}, a.body.Close())
	}
	return &Value{a.body, version}, nil
}

// escapeKey escapes all bytes but letters, digits, and two that no proxy changes.
func escapeKey(key []byte) string {
	var b strings.Builder
	for _, c := range key {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// getEmpty is Get for the empty key.
func (c *Client) getEmpty(ctx context.Context, db string, want Want) (*Value, error) {
	b, err := c.Batch(ctx, db, [][]byte{{}}, want)
	if err != nil {
		return nil, err
	}
	if !b.Next() || !b.Found() {
		err := b.Err()
		if err == nil {
			err = &Error{Kind: NoKey, URL: c.shown, Version: b.Version, text: "has no such key in version " + term.Escape([]byte(b.Version)) + " of " + db}
		}
		return nil, errors.Join(err, b.Close())
	}
	return &Value{struct {
		io.Reader
		io.Closer
	}{b.Value(), b}, b.Version}, nil
}

// Batch returns the values of several keys, all from one version.
func (c *Client) Batch(ctx context.Context, db string, keys [][]byte, want Want) (*Batch, error) {
	var body bytes.Buffer
	for _, key := range keys {
		if len(key) > maxKey {
			return nil, fmt.Errorf("a key has %d bytes, and the limit is %d", len(key), maxKey)
		}
		body.Write(binary.BigEndian.AppendUint32(nil, uint32(len(key))))
		body.Write(key)
	}
	a, err := c.get(ctx, db, request{path: "/" + url.PathEscape(db), accept: octets, body: &body, want: want})
	if err != nil {
		return nil, err
	}
	fields, err := c.fields(a)
	if err != nil {
		return nil, err
	}
	return &Batch{fields: *fields, left: len(keys)}, nil
}

// Batch is the answer for several keys.
type Batch struct {
	fields
	left  int
	found bool
}

// absent is the length of the value of a key that is absent.
const absent = math.MaxUint32

// Next goes to the value of the next key. It returns false after the last, and after an error.
func (b *Batch) Next() bool {
	if b.left == 0 {
		b.finish()
	}
	if b.err != nil || b.left == 0 {
		return false
	}
	b.left--
	n, ok := b.next()
	if b.found = ok && n != absent; b.found {
		b.begin(int64(n))
	}
	return ok
}

// Found reports whether the version has the key.
func (b *Batch) Found() bool { return b.found }

// fields are the lengths and bytes in an answer.
type fields struct {
	// Version is the version that they are from.
	Version string

	client *Client
	body   *body
	in     *bufio.Reader
	value  io.LimitedReader // what is left of the current value
	size   int64            // of the current value
	err    error

	finished bool // nothing follows
}

// fields returns the fields in the body of an answer.
func (c *Client) fields(a *answer) (*fields, error) {
	f := &fields{Version: a.header.Get("X-Sequins-Version"), client: c, body: a.body, in: bufio.NewReaderSize(a.body, 64<<10)}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if f.Version == "" || media != octets {
		return nil, errors.Join(f.strange(notSequins), a.body.Close())
	}
	return f, nil
}

// Err returns why Next has ended; nil at the end of a complete answer.
func (f *fields) Err() error { return f.err }

// Size returns the size of the current value in bytes.
func (f *fields) Size() int64 { return f.size }

// Value returns the current value, until Next.
func (f *fields) Value() io.Reader { return (*fieldReader)(f) }

// Close ends the request.
func (f *fields) Close() error { return f.body.Close() }

// fieldReader reads the current value.
type fieldReader fields

// Read implements io.Reader. A value that ends early is an error.
func (r *fieldReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.value.Read(p)
	if err == io.EOF && r.value.N > 0 {
		r.err = r.client.ended(io.ErrUnexpectedEOF)
		return n, r.err
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// WriteTo implements io.WriterTo, without a buffer of its own.
func (r *fieldReader) WriteTo(w io.Writer) (n int64, err error) {
	for r.err == nil && r.value.N > 0 {
		if _, err := r.in.Peek(1); err != nil {
			r.err = r.client.ended(err)
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
func (f *fields) begin(n int64) { f.size, f.value = n, io.LimitedReader{R: f.in, N: n} }

// next passes over what is left of the value and returns the next length.
func (f *fields) next() (length uint32, ok bool) {
	f.skip()
	if f.err != nil {
		return 0, false
	}
	var b [4]byte
	if _, err := io.ReadFull(f.in, b[:]); err != nil {
		f.err = f.client.ended(err)
		return 0, false
	}
	return binary.BigEndian.Uint32(b[:]), true
}

// skip passes over what is left of the value.
func (f *fields) skip() {
	if f.value.N > 0 && f.err == nil {
		_, _ = io.Copy(io.Discard, f.Value()) // the error is in f
	}
}

// finish checks that nothing follows the value.
func (f *fields) finish() {
	if f.skip(); f.err != nil || f.finished {
		return
	}
	f.finished = true
	if _, err := f.in.ReadByte(); err == nil {
		f.err = f.strange("sends more than was asked for")
	} else if err != io.EOF {
		f.err = f.client.ended(err)
	}
}

func (f *fields) strange(text string) error {
	return &Error{Kind: Strange, URL: f.client.shown, text: text}
}

// ended returns the error for an answer that ended in the middle.
func (c *Client) ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.brokenOff(context.Background(), err)
	}
	return err
}
