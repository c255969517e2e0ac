package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Reply is one answer. Its slices are valid until the next read of its connection.
type Reply struct {
	Found bool
	Head  []byte // of an HTTP answer
	Body  []byte
}

// Parser finds the first answer in the received bytes of a connection, and its length; 0 while it is
// incomplete.
type Parser func(received []byte) (Reply, int, error)

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
	httpOK        = []byte("HTTP/1.1 200 ")
	httpNotFound  = []byte("HTTP/1.1 404 ")
	lineEnd       = []byte("\r\n")
)

// HTTP parses answers of HTTP/1.1 that say how long they are, as all servers under test do.
func HTTP(received []byte) (Reply, int, error) {
	end := bytes.Index(received, headEnd)
	if end < 0 {
		return Reply{}, 0, nil
	}
	head := received[:end+2]
	r := Reply{Found: bytes.HasPrefix(head, httpOK), Head: head}
	if !r.Found && !bytes.HasPrefix(head, httpNotFound) {
		line, _, _ := bytes.Cut(head, lineEnd)
		return r, 0, fmt.Errorf("answer %q", line)
	}
	length, ok := HeaderValue(head, contentLength)
	n, err := strconv.Atoi(string(length))
	if !ok || err != nil || n < 0 {
		return r, 0, fmt.Errorf("no length in %q", head)
	}
	end += len(headEnd)
	if len(received) < end+n {
		return Reply{}, 0, nil
	}
	r.Body = received[end : end+n]
	return r, end + n, nil
}

// HeaderValue returns the value of a header field, whose name is given as "\r\nName: ".
func HeaderValue(head, name []byte) ([]byte, bool) {
	i := bytes.Index(head, name)
	if i < 0 {
		return nil, false
	}
	value, _, ok := bytes.Cut(head[i+len(name):], lineEnd)
	return value, ok
}

// Redis parses the answers to GET.
func Redis(received []byte) (Reply, int, error) {
	line, rest, ok := bytes.Cut(received, lineEnd)
	if !ok {
		return Reply{}, 0, nil
	}
	if len(line) < 2 || line[0] != '$' {
		return Reply{}, 0, fmt.Errorf("answer %q", line)
	}
	n, err := strconv.Atoi(string(line[1:]))
	switch {
	case n == -1:
		return Reply{}, len(line) + 2, nil
	case err != nil || n < 0:
		return Reply{}, 0, errors.New("malformed length")
	case len(rest) < n+2:
		return Reply{}, 0, nil
	}
	return Reply{Found: true, Body: rest[:n]}, len(line) + 2 + n + 2, nil
}

// Get is an HTTP request for a path.
func Get(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n\r\n")
}

// RedisGet is the request for a key.
func RedisGet(key []byte) []byte {
	return fmt.Appendf(nil, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key)
}
