package objects

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"sequins/source"
)

// maxAnswer limits the answers of a store that are parsed, in bytes. A page of a listing has up to 5,000 names of up to 1 KiB.
const maxAnswer = 64 << 20

// LimitAnswer returns a body that fails after maxAnswer bytes.
func LimitAnswer(body io.ReadCloser) io.ReadCloser { return &limitedBody{body, maxAnswer} }

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, Permanent(fmt.Errorf("an answer of more than %d bytes", maxAnswer))
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Permanent returns an error that another attempt would meet again.
func Permanent(err error) error { return permanent{err} }

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// NonRetriable makes the pipeline of Azure's SDK not repeat the request.
func (permanent) NonRetriable() {}

// Meaning returns the error of an answer with an HTTP status whose code tells nothing more, and nil for others. A 404 can be a
// proxy's.
func Meaning(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fs.ErrPermission
	case http.StatusPreconditionFailed:
		return source.ErrChanged
	case http.StatusRequestedRangeNotSatisfiable:
		return ErrRange
	}
	return nil
}

// Explain returns an error with a meaning, which may be nil, what the server said, and who asked, for one about permissions.
func Explain(meaning error, said, who string) error {
	switch {
	case meaning == nil:
		return errors.New(said)
	case errors.Is(meaning, fs.ErrPermission):
		return fmt.Errorf("%w (%s; requested %s)", meaning, said, who)
	}
	return fmt.Errorf("%w (%s)", meaning, said)
}

// Extent returns the offset of the first byte of an answer and the size of the object, by the answer's Content-Range. whole
// reports whether its status is 200: then it is the whole object, because that is empty or the server does not support
// ranges.
func Extent(whole bool, contentRange string, contentLength *int64) (from, size int64, err error) {
	if contentRange == "" && whole {
		if contentLength == nil || *contentLength < 0 {
			return 0, 0, errors.New("the server sent an object without its length")
		}
		return 0, *contentLength, nil
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
