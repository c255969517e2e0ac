package server

import (
	"bytes"
	"math"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
)

// representation is what the conditions of a request are held against: the
// value of a key in one version.
type representation struct {
	etag         []byte    // strong, in quotes
	lastModified time.Time // whole seconds; zero if unknown
	size         int64
}

// selection is what is to be sent of a representation.
type selection struct {
	status     int   // 200, 206, 304, 412 or 416
	start, end int64 // bytes of the value, where the status is 200 or 206
}

func (s selection) hasBody() bool {
	return s.status == http.StatusOK || s.status == http.StatusPartialContent
}

// hasConditions looks for a header that begins with 'I' or 'R' in a header
// block, so that the common request, which has no If-… and no Range, is not
// searched seven times.
func hasConditions(raw []byte) bool {
	for len(raw) > 0 {
		if c := raw[0] | 0x20; c == 'i' || c == 'r' {
			return true
		}
		i := bytes.IndexByte(raw, '\n')
		if i < 0 {
			return false
		}
		raw = raw[i+1:]
	}
	return false
}

// choose evaluates the preconditions and the range of a request in the order of
// RFC 9110, section 13.2.2.
//
// Last-Modified is the age of a version, not of a value, and a younger version
// may hold older files: a date therefore never proves more than that it is the
// very date that we sent. So If-Modified-Since means "not modified" only for
// that exact date, as nginx has it, and a date in If-Range never matches. ETags
// are of the value and exact.
func choose(h *fasthttp.RequestHeader, rep representation) selection {
	whole := selection{status: http.StatusOK, end: rep.size}
	if !hasConditions(h.RawHeaders()) {
		return whole
	}
	if im := h.PeekAll("If-Match"); present(im) {
		if !matches(im, rep.etag, strong) {
			return selection{status: http.StatusPreconditionFailed}
		}
	} else if t, ok := date(h.Peek("If-Unmodified-Since"), rep); ok && rep.lastModified.After(t) {
		return selection{status: http.StatusPreconditionFailed}
	}
	if inm := h.PeekAll("If-None-Match"); present(inm) {
		if matches(inm, rep.etag, weak) {
			return selection{status: http.StatusNotModified}
		}
	} else if t, ok := date(h.Peek("If-Modified-Since"), rep); ok && rep.lastModified.Equal(t) {
		return selection{status: http.StatusNotModified}
	}
	ranges := h.PeekAll("Range")
	if len(ranges) != 1 || !h.IsGet() {
		return whole
	}
	if ir := h.Peek("If-Range"); len(ir) > 0 && !matches([][]byte{ir}, rep.etag, strong) {
		return whole
	}
	return byteRange(ranges[0], rep.size)
}

// present says whether a header was sent with anything in it.
func present(lines [][]byte) bool {
	for _, l := range lines {
		if len(bytes.TrimSpace(l)) > 0 {
			return true
		}
	}
	return false
}

func date(s []byte, rep representation) (time.Time, bool) {
	if len(s) == 0 || rep.lastModified.IsZero() {
		return time.Time{}, false
	}
	t, err := http.ParseTime(string(s))
	return t, err == nil
}

// strong and weak are the two ways of comparing ETags, RFC 9110, section
// 8.8.3.2. Ours are strong, so a strong comparison only refuses "W/…".
const (
	strong = false
	weak   = true
)

// matches says whether a list of ETags, over any number of header lines, is
// "*" or names the given one. It stops at what is no ETag.
func matches(lines [][]byte, etag []byte, weakly bool) bool {
	for _, l := range lines {
		for {
			l = bytes.TrimLeft(l, " \t,")
			if len(l) == 0 {
				break
			}
			if l[0] == '*' {
				return true
			}
			tag, isWeak, rest, ok := scanETag(l)
			if !ok {
				break
			}
			if bytes.Equal(tag, etag) && (weakly || !isWeak) {
				return true
			}
			l = rest
		}
	}
	return false
}

// scanETag takes one entity-tag off the beginning of s: [ "W/" ] DQUOTE *etagc DQUOTE.
func scanETag(s []byte) (tag []byte, isWeak bool, rest []byte, ok bool) {
	s, isWeak = bytes.CutPrefix(s, []byte("W/"))
	if len(s) < 2 || s[0] != '"' {
		return nil, false, nil, false
	}
	end := bytes.IndexByte(s[1:], '"')
	if end < 0 || bytes.ContainsAny(s[1:1+end], " \t") {
		return nil, false, nil, false
	}
	return s[:end+2], isWeak, s[end+2:], true
}

// byteRange selects the bytes that a Range header asks for of a value of size
// bytes. A header that is malformed, of another unit or asks for more than one
// range is ignored, as RFC 9110, section 14.2, allows; so is any range of an
// empty value, because some clients send one always.
func byteRange(header []byte, size int64) selection {
	whole := selection{status: http.StatusOK, end: size}
	const unit = "bytes="
	if len(header) < len(unit) || !bytes.EqualFold(header[:len(unit)], []byte(unit)) || size == 0 {
		return whole
	}
	spec, ok := onlyRange(header[len(unit):])
	if !ok {
		return whole
	}
	first, last, ok := bytes.Cut(spec, []byte{'-'})
	if !ok {
		return whole
	}
	start, end, ok := bounds(bytes.TrimSpace(first), bytes.TrimSpace(last), size)
	if !ok {
		return whole
	}
	if start >= size {
		return selection{status: http.StatusRequestedRangeNotSatisfiable}
	}
	return selection{status: http.StatusPartialContent, start: start, end: end}
}

// onlyRange gives the single element of a list in which others are empty.
func onlyRange(list []byte) (spec []byte, ok bool) {
	for len(list) > 0 {
		var item []byte
		item, list, _ = bytes.Cut(list, []byte{','})
		if item = bytes.TrimSpace(item); len(item) == 0 {
			continue
		}
		if spec != nil {
			return nil, false
		}
		spec = item
	}
	return spec, spec != nil
}

// bounds resolves first-last, first- or -suffix; start is size where the range
// cannot be satisfied.
func bounds(first, last []byte, size int64) (start, end int64, ok bool) {
	if len(first) == 0 {
		n, ok := number(last)
		return size - min(n, size), size, ok
	}
	start, ok = number(first)
	if !ok || len(last) == 0 {
		return min(start, size), size, ok
	}
	l, ok := number(last)
	if !ok || l < start {
		return 0, 0, false
	}
	return min(start, size), min(l, size-1) + 1, true
}

// number reads decimal digits; what does not fit is as large as can be.
func number(s []byte) (n int64, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (math.MaxInt64-9)/10 {
			n = math.MaxInt64 / 10 * 10 // stays there: no value is as large
			continue
		}
		n = 10*n + int64(c-'0')
	}
	return n, len(s) > 0
}
