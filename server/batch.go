package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sequins/internal/http1"
	"sequins/internal/wire"
	"sequins/reads"
	"sequins/server/internal/batchkeys"
	"sequins/server/internal/negotiate"
)

// serveBatch looks up several keys and answers with their values, all of one version, or prepares the reason why it cannot.
func (r *request) serveBatch(w *writer, req *http.Request) (prepared bool) {
	keys, ok := r.batchKeys(req)
	if !ok {
		return true
	}
	r.query = r.newQuery()
	o := r.DoBatch(&r.query, keys)
	if o == reads.Found {
		r.sendBatch(w)
		return false
	}
	r.prepare(o)
	if o == reads.TooLarge {
		_, limit := r.s.reads.BatchLimits()
		r.text = fmt.Sprintf("the values are larger than %d bytes ([batch] max_bytes)", limit)
	}
	return true
}

// batchKeys returns the keys of a request, or prepares the reason why it cannot.
func (r *request) batchKeys(req *http.Request) (keys [][]byte, ok bool) {
	maxKeys, maxBytes := r.s.reads.BatchLimits()
	if coding := req.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		r.add("Accept-Encoding", []byte("identity"))
		r.fail(http.StatusUnsupportedMediaType, "the body of a request must not have a Content-Encoding")
		return nil, false
	}
	var err error
	if req.Method != http.MethodPost {
		keys, err = keyParameters(r.target.query, maxKeys)
	} else if body, ok := r.readKeys(req, maxBytes); !ok {
		return nil, false
	} else if media, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(media), wire.Bytes) {
		keys, err = batchkeys.Parse(body, maxKeys)
	} else {
		keys, err = batchkeys.ParseJSON(body, maxKeys)
	}
	switch {
	case errors.Is(err, batchkeys.ErrTooLarge):
		r.fail(http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		r.fail(http.StatusBadRequest, err.Error())
	}
	return keys, err == nil
}

// readKeys reads the body of a request, or prepares the reason why it cannot. Memory is reserved for what has arrived, not for what is
// announced.
func (r *request) readKeys(req *http.Request, limit int64) (body []byte, ok bool) {
	const first = 4 << 10 // what is announced and not sent takes no more than this
	b := bytes.NewBuffer(make([]byte, 0, min(max(req.ContentLength, 0), first)+bytes.MinRead))
	o, err := reads.TooLarge, error(nil)
	if req.ContentLength <= limit {
		o = reads.Found
		_, err = io.CopyN(b, req.Body, first)
	}
	for piece := int64(first); err == nil && o == reads.Found; piece = min(2*piece, 4<<20) {
		if o = r.Reserve(piece); o == reads.Found {
			var n int64
			n, err = io.CopyN(b, req.Body, piece)
			r.Unreserve(piece - n)
		}
		if int64(b.Len()) > limit {
			o = reads.TooLarge
		}
	}
	switch {
	case o == reads.TooLarge:
		r.fail(http.StatusRequestEntityTooLarge, fmt.Sprintf("%v: the request has more than %d bytes ([batch] max_bytes)", batchkeys.ErrTooLarge, limit))
	case o != reads.Found:
		r.prepare(o)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.fail(http.StatusRequestTimeout, tooLong)
	case err != io.EOF:
		r.fail(http.StatusBadRequest, "the keys could not be read: "+err.Error())
	default:
		return b.Bytes(), true
	}
	return nil, false
}

// keyParameters returns the values of all parameters named key.
func keyParameters(query []byte, limit int) (keys [][]byte, err error) {
	for p, err := range http1.Parameters(query) {
		switch {
		case string(p.Name) != "key":
			continue
		case err != nil:
			return nil, err
		case !p.Valued:
			return nil, errors.New("the parameter key has no value: ?key=K, or ?key= for the empty key")
		}
		if keys, err = batchkeys.Append(keys, p.Value, limit); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// sendBatch sends the values in the format that the client accepts. They are copies, so that the version need not wait
// for a slow client.
func (r *request) sendBatch(w *writer) {
	r.LetGo()
	h := w.Header()
	h.Set(wire.Version, string(r.Version))
	if r.query.Version != nil && len(r.Content) > 0 {
		h.Set(wire.Content, string(r.Content))
	}
	r.vary |= varyAccept
	b := batchBuffers.Get().(*batchBuffer)
	defer batchBuffers.Put(b)
	b.reset(w)
	r.code = http.StatusOK
	switch media := negotiate.Media(string(r.asked.accept), wire.JSON, wire.Bytes, wire.Lines); {
	case media == wire.Bytes || r.query.Version != nil:
		h.Set("Content-Type", wire.Bytes)
		size := int64(len(r.Values)) * wire.LengthSize
		for _, v := range r.Values {
			size += int64(len(v))
		}
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		b.binary(r.Values)
	case media == wire.Lines:
		h.Set("Content-Type", wire.Lines)
		b.lines(r.Version, r.Values)
	default:
		h.Set("Content-Type", wire.JSON)
		b.json(r.Version, r.Values)
	}
	b.finish()
}

// batchBuffer collects an answer and sends it in pieces.
type batchBuffer struct {
	w      *writer
	b      []byte
	waited time.Duration // for the client, while pieces were sent
}

var batchBuffers = sync.Pool{New: func() any { return &batchBuffer{b: make([]byte, 0, responseBuffer)} }}

func (b *batchBuffer) reset(w *writer) { b.w, b.b, b.waited = w, b.b[:0], 0 }

// room sends what has been collected, if n more bytes would not fit.
func (b *batchBuffer) room(n int) {
	if len(b.b)+n > responseBuffer {
		b.flush()
	}
}

// finish sends the rest. An answer of one piece has a length.
func (b *batchBuffer) finish() {
	if !b.w.r.sent {
		b.w.Header().Set("Content-Length", strconv.Itoa(len(b.b)))
	}
	b.flush()
}

func (b *batchBuffer) flush() {
	b.write(b.b)
	b.b = b.b[:0]
}

// write sends p, unless the client receives too slowly for what its answer holds.
func (b *batchBuffer) write(p []byte) {
	for len(p) > 0 && !b.w.broken {
		n := min(len(p), writeChunk)
		began := time.Now()
		if by := b.w.r.WriteBy(n); !by.IsZero() && began.After(by) {
			b.w.broken = true
			return
		}
		b.w.r.conn.corked = !b.w.r.sent // net/http writes the first 4 KiB with the header, and then the rest
		b.w.Write(p[:n])                //nolint:errcheck // w records the error
		b.w.r.conn.corked = false
		b.waited += time.Since(began)
		p = p[n:]
	}
}

// bytes appends p, or sends it without a copy if it is large.
func (b *batchBuffer) bytes(p []byte) {
	if b.room(len(p)); len(p) > responseBuffer {
		b.flush()
		b.write(p)
		return
	}
	b.b = append(b.b, p...)
}

func (b *batchBuffer) binary(values [][]byte) {
	for _, v := range values {
		n := uint32(len(v))
		if v == nil {
			n = wire.Absent
		}
		b.room(wire.LengthSize)
		b.b = binary.BigEndian.AppendUint32(b.b, n)
		b.bytes(v)
	}
}

// json appends {"version": "...", "values": [...]}.
func (b *batchBuffer) json(version []byte, values [][]byte) {
	b.text(`{"version":`)
	b.string(version)
	b.text(`,"values":[`)
	for i, v := range values {
		if i > 0 {
			b.text(",")
		}
		b.value(v)
	}
	b.text("]}\n")
}

// lines appends {"version": "..."} and the values, each on a line.
func (b *batchBuffer) lines(version []byte, values [][]byte) {
	b.text(`{"version":`)
	b.string(version)
	b.text("}\n")
	for _, v := range values {
		b.value(v)
		b.text("\n")
	}
}

func (b *batchBuffer) text(s string) {
	b.room(len(s))
	b.b = append(b.b, s...)
}

// value appends null, {"value": "..."} or, if it is not UTF-8, {"base64": "..."}.
func (b *batchBuffer) value(v []byte) {
	switch {
	case v == nil:
		b.text("null")
	case utf8.Valid(v):
		b.text(`{"value":`)
		b.string(v)
		b.text("}")
	default:
		b.textOrBase64(v)
	}
}

// string appends a string, which must be UTF-8.
func (b *batchBuffer) string(s []byte) {
	b.text(`"`)
	b.escaped(s)
	b.text(`"`)
}

// escaped appends the inside of a JSON string, or a part of it.
func (b *batchBuffer) escaped(s []byte) {
	for len(s) > 0 {
		piece := s[:min(len(s), 4<<10)]
		b.room(6*len(piece) + 8)
		b.b = appendEscapedJSON(b.b, piece)
		s = s[len(piece):]
	}
}

// appendEscapedJSON appends the inside of a JSON string. b must have room for 6 times the length of s, and 8 bytes more.
func appendEscapedJSON(b, s []byte) []byte {
	for len(s) >= 8 { // copies 8 bytes at a time, of which those before the first that needs an escape count
		w, n := binary.LittleEndian.Uint64(s), len(b)
		binary.LittleEndian.PutUint64(b[n:n+8], w)
		m := needEscape(w)
		if m == 0 {
			b, s = b[:n+8], s[8:]
			continue
		}
		k := bits.TrailingZeros64(m) / 8
		b, s = appendEscape(b[:n+k], s[k]), s[k+1:]
	}
	for _, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			b = append(b, c)
		} else {
			b = appendEscape(b, c)
		}
	}
	return b
}

// needEscape returns a word whose lowest bit that is set is in the first byte of w that needs an escape; 0 if none does.
func needEscape(w uint64) uint64 {
	const each = 0x0101010101010101
	quote, backslash := w^('"'*each), w^('\\'*each)
	return ((w-' '*each)&^w | (quote-each)&^quote | (backslash-each)&^backslash) & (0x80 * each)
}

func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	}
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
