package gcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"sequins/source"
)

// maxMessage bounds the message of a server, in bytes.
const maxMessage = 4 << 10

// answerError is an answer that reports an error.
type answerError struct {
	status     int
	message    string
	fromStore  bool // rather than from a proxy before it
	retryAfter time.Duration
}

func (e *answerError) Error() string {
	said := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.message != "" {
		said += ": " + e.message
	}
	return said
}

// readError returns the error of an answer, and closes it.
func readError(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	err = errors.Join(err, resp.Body.Close())
	e := &answerError{status: resp.StatusCode, retryAfter: retryAfter(resp.Header)}
	var told struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	isHTML := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
	switch {
	case json.Unmarshal(text, &told) == nil && told.Error.Code == e.status:
		e.message, e.fromStore = told.Error.Message, true
	case resp.Header.Get("X-Guploader-Uploadid") != "" || !isHTML:
		e.message, e.fromStore = strings.TrimSpace(string(text)), true
	}
	if len(e.message) > 300 {
		e.message = e.message[:300] + "…"
	}
	e.message = strings.ToValidUTF8(strings.Join(strings.Fields(e.message), " "), "�")
	if err != nil && e.message == "" {
		return errors.Join(e, err)
	}
	return e
}

// explain converts an error of a request. Only Google's servers know that an object does not exist.
func (c *client) explain(err error) error {
	var e *answerError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.status == http.StatusNotFound && e.fromStore:
		return fmt.Errorf("%w (%w)", fs.ErrNotExist, err)
	case e.status == http.StatusPreconditionFailed:
		return fmt.Errorf("%w (%w)", source.ErrChanged, err)
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		return fmt.Errorf("%w (%w; requested %s)", fs.ErrPermission, err, c.whoAsks())
	}
	return err
}

// whoAsks describes the credentials of requests.
func (c *client) whoAsks() string {
	if c.tokens == nil {
		return "anonymously"
	}
	return "with " + c.tokens.describe()
}
