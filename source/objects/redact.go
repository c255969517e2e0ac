package objects

import (
	"regexp"
	"strings"
)

// Redact returns an error whose text has neither users, passwords and queries of http:// and https:// URLs, which libraries put
// into it, nor secrets, nor the address of this side of a connection, which changes while an error lasts. It wraps err; nil stays nil.
func Redact(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := redactText(err.Error(), secrets...)
	if text == err.Error() {
		return err
	}
	return &redacted{text, err}
}

// redacted is an error with another text.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }

// Unwrap returns the error itself, which is for errors.Is and errors.As: its text has secrets.
func (r *redacted) Unwrap() error { return r.err }

var (
	// quotedURL is a URL in quotes, which may have spaces and escaped quotes; bareURL is one without.
	quotedURL = regexp.MustCompile(`(?i)"https?://(?:[^"\\]|\\.)*"`)
	bareURL   = regexp.MustCompile(`(?i)\bhttps?://[^\s"]+`)
	userOf    = regexp.MustCompile(`^([a-zA-Z]+://)[^/?#]*@`)
	// ownAddress is how net.OpError names it.
	ownAddress = regexp.MustCompile(`\b(tcp[46]?) \S+->`)
)

func redactText(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	text = ownAddress.ReplaceAllString(text, "$1 ")
	text = quotedURL.ReplaceAllStringFunc(text, func(found string) string {
		return `"` + redactURL(found[1:len(found)-1]) + `"`
	})
	return bareURL.ReplaceAllStringFunc(text, redactURL)
}

func redactURL(u string) string {
	u = userOf.ReplaceAllString(u, "$1***@")
	end := ""
	if trimmed := strings.TrimRight(u, ":,;.)"); strings.ContainsAny(trimmed, "?#") {
		end = u[len(trimmed):] // the punctuation of a text around it
	}
	if i := strings.IndexAny(u, "?#"); i >= 0 {
		u = u[:i] + end
	}
	return u
}

// OneLine returns the beginning of a text as one line.
func OneLine(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 4<<10)]), " ")
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}
