package objects

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MaxAnswer limits the answers of a store that are parsed, in bytes. A page of a listing has up to 5,000 names of up to 1 KiB.
const MaxAnswer = 64 << 20

// LimitAnswer returns a body that fails after MaxAnswer bytes.
func LimitAnswer(body io.ReadCloser) io.ReadCloser { return &limitedBody{body, MaxAnswer} }

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("an answer of more than %d bytes", MaxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Extent returns the offset of the first byte of an answer and the size of the object, by the answer's Content-Range. whole
// reports whether its status is 200: then it is the whole object, because that is empty or the server does not support
// ranges.
func Extent(whole bool, contentRange string, contentLength int64) (from, size int64, err error) {
	if contentRange == "" && whole {
		if contentLength < 0 {
			return 0, 0, errors.New("the server sent an object without its length")
		}
		return 0, contentLength, nil
	}
	// RFC 9110, 14.4: bytes 0-99/1234
	rest, isBytes := strings.CutPrefix(contentRange, "bytes ")
	first, _, hasDash := strings.Cut(rest, "-")
	_, total, hasSlash := strings.Cut(rest, "/")
	from, err1 := strconv.ParseInt(first, 10, 64)
	size, err2 := strconv.ParseInt(total, 10, 64)
	if !isBytes || !hasDash || !hasSlash || err1 != nil || err2 != nil || from < 0 || size < from {
		return 0, 0, fmt.Errorf("invalid Content-Range %q", contentRange)
	}
	return from, size, nil
}
