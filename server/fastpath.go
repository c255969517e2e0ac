package server

import (
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"

	"sequins/reads"
)

// answerPlain answers the request with this header if it is plain; otherwise nothing has been looked up. open
// reports whether another request may follow.
func (c *conn) answerPlain(header []byte) (done, open bool) {
	a, ok := parsePlain(header)
	if !ok || c.crowded || c.server.delivery.Load().encodes(a.encoding) {
		return false, true
	}
	r := c.server.requests.Get().(*request)
	defer r.end()
	var err error
	if r.target, r.buf, err = parseTarget(a.uri, r.buf); err == nil && !r.target.isPlain() {
		return false, true
	}
	r.begin(c, http.MethodGet)
	r.arrived(a)
	r.answer(err)
	return true, !r.closing && c.sendErr == nil
}

// answer looks up the key of a plain request, unless its target is malformed, and sends the answer. A panic
// is a bug and causes status 500.
func (r *request) answer(malformed error) {
	defer func() {
		if p := recover(); p != nil {
			r.logPanic(p)
			r.closing = true
			if !r.sent {
				r.fields = r.fields[:0]
				r.fail(http.StatusInternalServerError, "internal error")
				r.send()
			}
		}
	}()
	if malformed != nil {
		r.fail(http.StatusBadRequest, malformed.Error())
	} else if r.mayRead() {
		r.prepare(r.read(nil))
	}
	r.send()
}

func (r *request) logPanic(p any) {
	r.s.limited.Error("panic while answering a request", "target", string(r.appendEscaped(nil)), "panic", p, "stack", string(debug.Stack()))
}

// copied is the length in bytes up to which it is cheaper to copy a value after the header than to write two
// buffers.
const copied = 4 << 10

func (r *request) send() {
	if r.text == "" && r.Bytes == nil {
		r.stream()
		return
	}
	value, n, text := r.Bytes, int64(len(r.Bytes)), ""
	if r.text != "" {
		text = r.errorBody()
		value, n = nil, int64(len(text)+1)
	}
	r.out = r.appendHeader(r.out[:0], n)
	if text != "" {
		r.out = append(append(r.out, text...), '\n')
	} else if n <= copied {
		r.out, value = append(r.out, value...), nil
	}
	r.bytes, r.sent = n, true
	now := r.Start().Add(r.finish())
	if value == nil { // copied: release the version and the peer before the client has received it
		r.LetGo()
	}
	r.conn.send(r.out, value, now)
}

// stream sends a value in parts. If none of it can be read here, it asks other nodes.
func (r *request) stream() {
	buffer := streamBuffers.Get().(*[]byte)
	defer streamBuffers.Put(buffer)
	body := r.Body()
	for b := r.appendHeader((*buffer)[:0], r.Length); ; b = (*buffer)[:0] {
		n, err := r.sendPart(b, body)
		if err != nil && !r.sent && body.Outcome == reads.Unreadable {
			r.prepare(r.Retry())
			r.send()
			return
		}
		r.bytes += int64(n)
		if r.conn.sendErr = err; err != nil || r.bytes == r.Length {
			break
		}
	}
	if r.conn.sendErr != nil {
		r.brokeOff(body.Outcome)
	}
	r.finish()
}

// sendPart sends b and the next part of a value: out of the page cache, or read into the rest of b's buffer.
func (r *request) sendPart(b []byte, body *reads.Body) (n int, err error) {
	if r.conn.socket != nil && body.Sendable() {
		r.sent = true
		return r.conn.sendBody(b, body)
	}
	room := b[len(b):cap(b)]
	if n, err = io.ReadFull(body, room[:min(int64(len(room)), r.Length-r.bytes)]); err != nil {
		return n, err
	}
	if r.bytes+int64(n) == r.Length { // so that the peer's connection is free before the client's next request
		r.LetGo()
	}
	r.sent = true
	_, err = r.conn.Write(b[:len(b)+n])
	return n, err
}

var streamBuffers = sync.Pool{New: func() any { b := make([]byte, 0, responseBuffer); return &b }}

// appendHeader appends the header of the prepared answer, with a body of n bytes.
func (r *request) appendHeader(b []byte, n int64) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(r.code), 10)
	b = append(b, ' ')
	if text := http.StatusText(r.code); text != "" {
		b = append(b, text...)
	} else { // like net/http
		b = strconv.AppendInt(append(b, "status code "...), int64(r.code), 10)
	}
	if now := r.Start().Unix(); now != r.conn.dated || r.conn.date == nil {
		r.conn.dated, r.conn.date = now, r.Start().UTC().AppendFormat(r.conn.date[:0], "\r\nDate: "+http.TimeFormat)
	}
	b = append(b, r.conn.date...)
	if r.closing {
		b = append(b, "\r\nConnection: close"...)
	}
	r.addShared()
	for _, f := range r.fields {
		b = append(append(append(append(b, "\r\n"...), f.name...), ": "...), f.value...)
	}
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), n, 10)
	return append(b, "\r\n\r\n"...)
}
