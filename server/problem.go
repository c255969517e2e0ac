package server

import (
	"net/http"
	"strings"

	"sequins/internal/wire"
	"sequins/server/internal/negotiate"
)

// Errors are one line of text, or, for clients that prefer it, the same in JSON (RFC 9457). A wildcard in Accept is no preference.

const (
	plainText   = "text/plain; charset=utf-8"
	problemJSON = "application/problem+json"
)

type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

var plainTextValue = []byte(plainText)

// fail prepares an error answer: a status and one line of text.
func (r *request) fail(code int, text string) {
	r.code, r.text, r.json, r.cache = code, text, false, nil
	r.vary |= varyAccept
	media := plainTextValue
	if a := r.asked.accept; len(a) > 0 && string(a) != "*/*" && !r.internal {
		if preferred := negotiate.Media(string(a), "text/plain", problemJSON, wire.JSON); preferred != "text/plain" {
			media, r.json = []byte(preferred), true
		}
	}
	r.add("Content-Type", media)
}

// errorBody returns the body of an error, without the end of its line.
func (r *request) errorBody() string {
	if !r.json {
		return r.text
	}
	title := http.StatusText(r.code)
	if r.code == statusClientGone {
		title = "Client Closed Request"
	}
	return strings.TrimSuffix(string(encodeJSON(problem{"about:blank", title, r.code, r.text})), "\n")
}
