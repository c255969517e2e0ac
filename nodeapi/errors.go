package nodeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sequins/internal/term"
)

// Kind is the kind of an Error.
type Kind int

// The kinds of errors.
const (
	// Refused: the node answers with an error of another kind.
	Refused Kind = iota
	// Unreachable: the node does not answer.
	Unreachable
	// Unable: the node answers that it cannot answer for now: it is starting, busy or behind, or other nodes do not answer it.
	Unable
	// NoKey: the version has no such key.
	NoKey
	// NoDB: the node knows no such database.
	NoDB
	// NoVersion: the node does not have the version.
	NoVersion
	// Denied: the token is missing or not valid for this.
	Denied
	// TooLarge: a batch exceeds a limit of the node.
	TooLarge
	// Damaged: the node cannot read the data.
	Damaged
	// Strange: what answers is not sequins, or a release that this one does not understand.
	Strange
)

// Error is why a node has not answered a request with what was asked for.
type Error struct {
	Kind Kind
	URL  string // of the node
	// Version is that of the answer NoKey.
	Version string
	text    string
	cause   error
}

// Error implements error.
func (e *Error) Error() string { return e.URL + " " + e.text }

// Unwrap returns the error that the node did not cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether an error is of a kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// errSilent is the cause of the end of a request to a node that sends nothing.
var errSilent = errors.New("the node is silent")

// kinds are the kinds of answers other than 200.
var kinds = map[int]Kind{
	http.StatusUnauthorized: Denied, http.StatusForbidden: Denied,
	http.StatusPreconditionFailed: NoVersion, http.StatusGone: NoVersion,
	http.StatusRequestEntityTooLarge: TooLarge,
	http.StatusInternalServerError:   Damaged,
	http.StatusBadGateway:            Unable, http.StatusServiceUnavailable: Unable, http.StatusGatewayTimeout: Unable,
}

// needsToken begins the text of an answer to a request without a token.
const needsToken = "a token is needed"

// refused returns the error for an answer other than 200.
func (c *Client) refused(a *answer, db string) error {
	text, _ := io.ReadAll(io.LimitReader(a.body, 4<<10)) // a part of the text will do
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if len(line) > maxLine {
		line = ""
	}
	e := &Error{Kind: kinds[a.status], URL: c.shown, Version: a.header.Get("X-Sequins-Version")}
	e.text = strings.TrimRight(fmt.Sprintf("answers with %d %s", a.status, http.StatusText(a.status)), " ")
	if line != "" {
		e.text += ": " + term.Escape([]byte(line))
	}
	switch {
	case a.status == http.StatusNotFound && db != "" && e.Version != "":
		e.Kind, e.text = NoKey, "has no such key in version "+term.Escape([]byte(e.Version))+" of "+db
	case a.status == http.StatusNotFound && strings.HasPrefix(line, "version "):
		e.Kind = NoVersion
	case a.status == http.StatusNotFound && db != "":
		e.Kind, e.text = NoDB, "has no database "+strconv.Quote(db)
	case e.Kind == Denied && strings.HasPrefix(line, needsToken):
		e.text = "wants a token: name its file with --token-file, or put it into SEQUINS_TOKEN"
	case e.Kind == Denied:
		e.text += "; --token-file or SEQUINS_TOKEN can name another one"
	case a.status == http.StatusBadRequest && (strings.Contains(line, "speaks TLS") || strings.Contains(line, "HTTPS server")): // the second is of Go's servers
		return c.speaksTLS(nil)
	}
	return e
}

// unreachable returns the error for a node that did not answer. It looks for what can be done about it.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errSilent) {
		return cause // the command has ended
	}
	var asking *url.Error // adds method and URL, which are known
	if errors.As(err, &asking) {
		err = asking.Err
	}
	secure := strings.HasPrefix(c.opts.URL, "https:")
	var timeout net.Error
	silent := errors.Is(context.Cause(ctx), errSilent) || errors.As(err, &timeout) && timeout.Timeout()
	fail := func(format string, args ...any) error {
		return &Error{Kind: Unreachable, URL: c.shown, text: fmt.Sprintf(format, args...), cause: err}
	}
	var name *net.DNSError
	switch text := err.Error(); {
	case silent && secure:
		return fail("has not answered within %v: it hangs, or its port does not speak TLS", c.opts.Silence)
	case silent:
		return fail("has not answered within %v", c.opts.Silence)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("refuses the connection: sequins does not run there, or listens at another address")
	case errors.As(err, &name) && name.IsNotFound:
		return fail("cannot be found: there is no host named %q", name.Name)
	case secure && strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return fail("does not speak TLS: use http://%s", strings.TrimPrefix(c.shown, "https://"))
	case alertOf(err) != "":
		return fail("refuses the TLS connection (%s): if it wants a certificate of its clients, name yours with --certificate and --certificate-key", alertOf(err))
	case !secure && c.handshakes(ctx):
		return c.speaksTLS(err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "server closed idle connection"):
		return fail("closes the connection without an answer: it is not sequins, or shuts down")
	}
	if text := certificateProblem(err); text != "" {
		return fail("%s", text)
	}
	return fail("cannot be reached: %v", err)
}

// speaksTLS returns the error for a node with TLS that was asked without.
func (c *Client) speaksTLS(err error) error {
	host := strings.TrimPrefix(c.shown, "http://")
	return &Error{Kind: Unreachable, URL: c.shown, cause: err,
		text: fmt.Sprintf("speaks TLS: use https://%s, with --ca FILE if no public authority has signed its certificate", host)}
}

// handshakes reports whether the node speaks TLS. Only that is looked at, so that the certificate does not matter.
func (c *Client) handshakes(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	host := strings.TrimPrefix(c.shown, "http://")
	d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}} //nolint:gosec // nothing is sent
	conn, err := d.DialContext(ctx, "tcp", host)
	if err == nil {
		_ = conn.Close() // nothing was sent
		return true
	}
	return alertOf(err) != ""
}

// alertOf returns the alert of TLS that the node has sent, "" if an error is another one.
func alertOf(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// certificateProblem describes what is wrong with the certificate of a node and what to do about it, "" if it is something else.
func certificateProblem(err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		issuer := "an issuer"
		if unknown.Cert != nil {
			issuer = strconv.Quote(unknown.Cert.Issuer.String()) + ","
		}
		return "has a certificate of " + issuer + " that is not known here: name the file with the certificate of that issuer with --ca"
	case errors.As(err, &host):
		return fmt.Sprintf("has a certificate that is not for %s but for %s: use one of these names, or issue a certificate for this one", host.Host, namesOf(host.Certificate))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("has a certificate that is valid from %s to %s: replace it ([tls] certificate), or set the clock of this machine",
			day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &invalid):
		return "has a certificate that cannot be used: " + invalid.Error()
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// namesOf returns what a certificate is for.
func namesOf(cert *x509.Certificate) string {
	all := append([]string(nil), cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no name"
	}
	const most = 5
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return term.Escape([]byte(strings.Join(all, ", ")))
}

// brokenOff returns the error for an answer that ended too early.
func (c *Client) brokenOff(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &Error{Kind: Unreachable, URL: c.shown, cause: err, text: fmt.Sprintf("has sent nothing for %v, in the middle of an answer", c.opts.Silence)}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Error{Kind: Unreachable, URL: c.shown, cause: err, text: "has broken off its answer: try again, or ask another node"}
}
