package server

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"

	"sequins/internal/wire"
	"sequins/reads"
	"sequins/server/internal/negotiate"
)

// serveScan answers an ordered read: the records of a range, or their number.
func (r *request) serveScan(w *writer, req *http.Request) (prepared bool) {
	q, err := parseScan(&r.target)
	if err != nil {
		r.fail(http.StatusBadRequest, err.Error())
		return true
	}
	r.query = r.newQuery()
	r.query.Head = r.method == http.MethodHead
	switch {
	case q.page != nil:
		return r.servePeer(w, req, q.page)
	case q.count:
		return r.serveCount(w, req, &q.Range)
	}
	return r.serveRange(w, req, &q.Range)
}

// scanTexts are the texts of outcomes that concern a range and not a key.
var scanTexts = map[reads.Outcome]string{
	reads.Busy:        "too many ordered reads at the same time: try again",
	reads.Unreadable:  "a block of this range cannot be read",
	reads.NotLocal:    "a partition of this range is not here",
	reads.Unreachable: "no node that can be reached has a partition of this range",
	reads.Late:        "the nodes that have a partition of this range took too long",
}

// refuseScan prepares the reason why there are no records.
func (r *request) refuseScan(o reads.Outcome) {
	r.prepare(o)
	if text, ok := scanTexts[o]; ok {
		r.text = text
	}
}

// serveCount answers with {"version": "...", "count": n}.
func (r *request) serveCount(w *writer, req *http.Request, g *reads.Range) (prepared bool) {
	w.coding = "" // it is small, and HEAD does not know its length
	n, o := r.Count(req.Context(), &r.query, g)
	if o != reads.Found {
		r.refuseScan(o)
		return true
	}
	r.code = http.StatusOK
	h := w.Header()
	h.Set(wire.Version, string(r.Version))
	h.Set("Content-Type", wire.JSON)
	if r.query.Head {
		return false
	}
	send(w, http.StatusOK, fmt.Appendf(nil, "{\"version\":%q,\"count\":%d}\n", r.Version, n)) // names need no escapes
	return false
}

// servePeer answers another node's request for a part of an ordered read.
func (r *request) servePeer(w *writer, req *http.Request, p *reads.PageRequest) (prepared bool) {
	if key, ok := p.Key(); ok {
		r.query.Key = key
		r.prepare(r.Do(&r.query))
		return true
	}
	body, o := r.Page(req.Context(), &r.query, p)
	if o != reads.Found {
		r.refuseScan(o)
		return true
	}
	r.LetGo() // a node that does not read its page must not keep others from theirs
	r.code = http.StatusOK
	h := w.Header()
	h.Set(wire.Version, string(r.Version))
	h.Set("Content-Type", wire.Bytes)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body) //nolint:errcheck // w records the error
	return false
}

// serveRange sends the records of a range as they are read. An error after the first part has been sent breaks the answer
// off; before, it has a status.
func (r *request) serveRange(w *writer, req *http.Request, g *reads.Range) (prepared bool) {
	s, o := r.Scan(req.Context(), &r.query, g)
	if o != reads.Found {
		r.refuseScan(o)
		return true
	}
	h := w.Header()
	h.Set(wire.Version, string(r.Version))
	r.vary |= varyAccept
	media := negotiate.Media(string(r.asked.accept), wire.Lines, wire.Bytes)
	h.Set("Content-Type", media)
	r.code = http.StatusOK
	if r.query.Head {
		return false
	}
	out := batchBuffers.Get().(*batchBuffer)
	defer batchBuffers.Put(out)
	out.reset(w)
	if media == wire.Bytes {
		out.scanBinary(s)
	} else {
		out.scanLines(s)
	}
	switch o := s.Outcome(); {
	case o == reads.Found:
		out.finish()
	case r.sent:
		s.Fail(o)
		w.broken = true
	default:
		clear(h)
		r.refuseScan(o)
		return true
	}
	return false
}

// pace ends a scan whose client has gone, or delays the removal of its version. It returns false if the scan has ended.
func (b *batchBuffer) pace(s *reads.Scan, sent *int64) bool {
	if b.w.taken == *sent && !b.w.broken {
		return true
	}
	*sent = b.w.taken
	if b.w.broken {
		s.Fail(reads.GivenUp)
	}
	return s.Hurry(*sent, b.waited) && !b.w.broken
}

// scanBinary sends records as the frames of key and value; then wire.Absent, and the frame of the cursor.
func (b *batchBuffer) scanBinary(s *reads.Scan) {
	var sent int64
	for s.Next() {
		key, value := s.Key(), s.Value()
		b.room(2*wire.LengthSize + len(key))
		b.b = wire.AppendFrame(b.b, key)
		b.b = binary.BigEndian.AppendUint32(b.b, uint32(s.Length()))
		if !s.Large() {
			b.bytes(value)
		} else if !b.each(s, func(piece []byte) bool { b.bytes(piece); return true }) {
			return
		}
		if !b.pace(s, &sent) {
			return
		}
	}
	cursor := s.Cursor()
	b.room(2 * wire.LengthSize)
	b.b = binary.BigEndian.AppendUint32(b.b, wire.Absent)
	b.b = binary.BigEndian.AppendUint32(b.b, uint32(len(cursor)))
	b.bytes(cursor)
}

// each calls f for the pieces of a large value until f returns false. It returns false if the scan has ended.
func (b *batchBuffer) each(s *reads.Scan, f func(piece []byte) bool) bool {
	value := s.Open()
	defer value.Close() //nolint:errcheck // it is only read from
	buffer := streamBuffers.Get().(*[]byte)
	defer streamBuffers.Put(buffer)
	piece, sent := (*buffer)[:pieceSize], b.w.taken
	for left := s.Length(); left > 0; {
		n, err := io.ReadFull(value, piece[:min(left, pieceSize)])
		if err != nil {
			return false
		}
		left -= int64(n)
		if !f(piece[:n]) {
			return true
		}
		if !b.pace(s, &sent) {
			return false
		}
	}
	return true
}

// pieceSize is a multiple of three, so that pieces need no padding between them in base64.
const pieceSize = 48 << 10

// scanLines sends records as {"key": ..., "value": ...}, each on a line, and {"version": ..., "records": n, "cursor": ...}.
// A key or value that is not UTF-8 is {"base64": "..."}.
func (b *batchBuffer) scanLines(s *reads.Scan) {
	var sent int64
	for s.Next() {
		if s.Large() {
			if !b.largeLine(s) {
				return
			}
		} else {
			b.line(s.Key(), s.Value(), s.KeysOnly())
		}
		if !b.pace(s, &sent) {
			return
		}
	}
	b.text(`{"version":`)
	b.string(b.w.r.Version)
	b.text(`,"records":` + strconv.FormatInt(s.Records(), 10) + `,"cursor":`)
	if cursor := s.Cursor(); cursor != nil {
		b.string(cursor)
	} else {
		b.text("null")
	}
	b.text("}\n")
}

// line sends a record. Most need no escapes.
func (b *batchBuffer) line(key, value []byte, keyOnly bool) {
	const overhead = len(`{"key":"","value":""}` + "\n")
	if n := len(key) + len(value) + overhead; n <= responseBuffer && isPlainText(key) && isPlainText(value) {
		b.room(n)
		to := append(append(b.b, `{"key":"`...), key...)
		if !keyOnly {
			to = append(append(to, `","value":"`...), value...)
		}
		b.b = append(to, '"', '}', '\n')
		return
	}
	b.text(`{"key":`)
	b.textOrBase64(key)
	if !keyOnly {
		b.text(`,"value":`)
		b.textOrBase64(value)
	}
	b.text("}\n")
}

// isPlainText reports whether s is ASCII that needs no escape in JSON.
func isPlainText(s []byte) bool {
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		if x := binary.LittleEndian.Uint64(s[n:]); needEscape(x)|x&0x8080808080808080 != 0 {
			return false
		}
	}
	for ; n < len(s); n++ {
		if c := s[n]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// textOrBase64 appends a string or, if it is not UTF-8, {"base64": "..."}.
func (b *batchBuffer) textOrBase64(p []byte) {
	if utf8.Valid(p) {
		b.string(p)
		return
	}
	b.text(`{"base64":"`)
	b.base64(p)
	b.text(`"}`)
}

// largeLine sends a record with a large value. It reads the value twice, first to see whether it is UTF-8.
func (b *batchBuffer) largeLine(s *reads.Scan) bool {
	valid, ok := b.isText(s)
	if !ok {
		return false
	}
	b.text(`{"key":`)
	b.textOrBase64(s.Key())
	begin, end, write := `,"value":{"base64":"`, "\"}}\n", b.base64
	if valid {
		begin, end, write = `,"value":"`, "\"}\n", b.escaped
	}
	b.text(begin)
	if !b.each(s, func(piece []byte) bool { write(piece); return true }) {
		return false
	}
	b.text(end)
	return true
}

// isText reports whether a large value is UTF-8, and whether it could be read.
func (b *batchBuffer) isText(s *reads.Scan) (valid, ok bool) {
	valid = true
	var rest []byte // the beginning of a character that goes on in the next piece
	var whole []byte
	ok = b.each(s, func(piece []byte) bool {
		whole = append(append(whole[:0], rest...), piece...)
		n := len(whole)
		for i := 1; i < utf8.UTFMax && i <= n; i++ {
			if utf8.RuneStart(whole[n-i]) {
				if !utf8.FullRune(whole[n-i:]) {
					n -= i
				}
				break
			}
		}
		valid = utf8.Valid(whole[:n])
		rest = append(rest[:0], whole[n:]...)
		return valid
	})
	return valid && len(rest) == 0, ok
}

// base64 appends p in base64, in pieces that need no padding between them.
func (b *batchBuffer) base64(p []byte) {
	for len(p) > 0 {
		piece := p[:min(len(p), 3<<10)]
		b.room(base64.StdEncoding.EncodedLen(len(piece)))
		b.b = base64.StdEncoding.AppendEncode(b.b, piece)
		p = p[len(piece):]
	}
}
