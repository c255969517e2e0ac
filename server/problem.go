package server

import (
	"encoding/json"
	"net/http"

	"sequins/server/internal/negotiate"
)

// Errors are one line of text, or, for clients that prefer it, the same in JSON (RFC 9457). A wildcard in Accept is no preference.

const (
	plainText   = "text/plain; charset=utf-8"
	problemJSON = "application/problem+json"
	plainJSON   = "application/json"
)

// problem is an error in JSON.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// errorMedia are the Content-Type fields of errors.
var errorMedia = map[string][]byte{plainText: []byte(plainText), problemJSON: []byte(problemJSON), plainJSON: []byte(plainJSON)}

// fail prepares an error answer: a status and one line of text.
func (r *request) fail(code int, text string) {
	r.code, r.text, r.media, r.cache = code, text, plainText, nil
	r.vary |= varyAccept
	if a := r.asked.accept; len(a) > 0 && string(a) != "*/*" && !r.internal {
		switch accept := string(a); negotiate.Media(accept, "text/plain", problemJSON, plainJSON) {
		case problemJSON:
			r.media = problemJSON
		case plainJSON:
			r.media = plainJSON
		}
	}
	r.add("Content-Type", errorMedia[r.media])
}

// errorBody returns the body of an error, without the end of its line.
func (r *request) errorBody() string {
	if r.media == plainText {
		return r.text
	}
	title := http.StatusText(r.code)
	if r.code == statusClientGone {
		title = "Client Closed Request"
	}
	b, err := json.Marshal(problem{"about:blank", title, r.code, r.text})
	if err != nil {
		panic(err) // it consists of strings and a number
	}
	return string(b)
}
