package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
)

// unreachable returns the error for a node that did not answer, with a hint.
func (s *statusClient) unreachable(err error) error {
	var asking *url.Error // adds method and URL, which are known
	timeout := false
	if errors.As(err, &asking) {
		err, timeout = asking.Err, asking.Timeout()
	}
	var unknown x509.UnknownAuthorityError
	switch {
	case timeout && strings.HasPrefix(s.base, "https:"):
		return fmt.Errorf("%s: no answer within %s: the node hangs, or its port does not speak TLS", s.base, statusTimeout)
	case timeout:
		return fmt.Errorf("%s: no answer within %s", s.base, statusTimeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: nothing listens there: sequins does not run, or at another address: %w", s.base, err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%s: %w: name the file with its CA with --ca", s.base, err)
	}
	return fmt.Errorf("%s: %w", s.base, err)
}

// maxLine limits the part of an answer that is shown, in bytes.
const maxLine = 200

// firstLine returns the first line of an error answer, to follow its status.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(string(body), "\n")
	if line = strings.TrimSpace(line); line == "" || len(line) > maxLine {
		return ""
	}
	return ": " + plain(line)
}
