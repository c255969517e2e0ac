package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sequins/internal/term"
	"sequins/internal/wire"
)

// The kinds of errors of a Node, besides ErrNotFound, ErrNoDB, ErrDenied, ErrTooLarge and ErrUnavailable.
var (
	// ErrUnreachable means that the node does not answer.
	ErrUnreachable = errors.New("the node does not answer")
	// ErrNoVersion means that the node does not have the version.
	ErrNoVersion = errors.New("no such version")
	// ErrDamaged means that the node cannot read the data.
	ErrDamaged = errors.New("the node cannot read the data")
	// ErrStrange means that what answers is not sequins, or a release that this one does not understand.
	ErrStrange = errors.New("not an answer of sequins")
)

// NodeError is why a node has not answered a request with what was asked for.
type NodeError struct {
	Kind  error  // one of the errors above; nil for others
	URL   string // of the node
	text  string
	cause error
}

// Error implements error.
func (e *NodeError) Error() string { return e.URL + " " + e.text }

// Unwrap returns the error that the node did not cause.
func (e *NodeError) Unwrap() error { return e.cause }

// Is reports whether target is the kind of the error.
func (e *NodeError) Is(target error) bool { return target == e.Kind }

// kinds are the kinds of answers other than 200.
var kinds = map[int]error{
	http.StatusUnauthorized: ErrDenied, http.StatusForbidden: ErrDenied,
	http.StatusPreconditionFailed: ErrNoVersion, http.StatusGone: ErrNoVersion,
	http.StatusRequestEntityTooLarge: ErrTooLarge,
	http.StatusInternalServerError:   ErrDamaged,
	http.StatusBadGateway:            ErrUnavailable, http.StatusServiceUnavailable: ErrUnavailable, http.StatusGatewayTimeout: ErrUnavailable,
}

// needsToken begins the text of an answer to a request without a token.
const needsToken = "a token is needed"

// refused returns the error for an answer other than 200.
func (c *Node) refused(a *http.Response, db string) error {
	text, _ := io.ReadAll(io.LimitReader(a.Body, 4<<10)) // a part of the text will do
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if len(line) > maxLine {
		line = ""
	}
	e, version := &NodeError{Kind: kinds[a.StatusCode], URL: c.shown}, a.Header.Get(wire.Version)
	e.text = strings.TrimRight(fmt.Sprintf("answers with %d %s", a.StatusCode, http.StatusText(a.StatusCode)), " ")
	if line != "" {
		e.text += ": " + term.Escape([]byte(line))
	}
	switch {
	case a.StatusCode == http.StatusNotFound && db != "" && version != "":
		return c.noKey(db, version)
	case a.StatusCode == http.StatusNotFound && strings.HasPrefix(line, "version "):
		e.Kind = ErrNoVersion
	case a.StatusCode == http.StatusNotFound && db != "":
		e.Kind, e.text = ErrNoDB, "has no database "+strconv.Quote(db)
	case e.Kind == ErrDenied && strings.HasPrefix(line, needsToken):
		e.text = "wants a token: name its file with --token-file, or put it into SEQUINS_TOKEN"
	case e.Kind == ErrDenied:
		e.text += "; --token-file or SEQUINS_TOKEN can name another one"
	case a.StatusCode == http.StatusBadRequest && (strings.Contains(line, "speaks TLS") || strings.Contains(line, "HTTPS server")): // the second is of Go's servers
		return c.speaksTLS(nil)
	}
	return e
}

// noKey returns the error for a key that a version does not have.
func (c *Node) noKey(db, version string) error {
	return &NodeError{Kind: ErrNotFound, URL: c.shown, text: "has no such key in version " + term.Escape([]byte(version)) + " of " + db}
}

// strange returns the error for an answer that is not one of a node.
func (c *Node) strange(text string) error {
	return &NodeError{Kind: ErrStrange, URL: c.shown, text: text}
}

// unreachable returns the error for a node that did not answer. It looks for what can be done about it.
func (c *Node) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // the command has ended
	}
	secure := strings.HasPrefix(c.url, "https:")
	timeout, is := errors.AsType[net.Error](err)
	silent := errors.Is(err, errSilent) || is && timeout.Timeout()
	fail := func(format string, args ...any) error {
		return &NodeError{Kind: ErrUnreachable, URL: c.shown, text: fmt.Sprintf(format, args...), cause: err}
	}
	ends := []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed}
	closed := slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
	if secure && closed {
		if again := c.refusal(ctx); alertOf(again) != "" {
			err = again
		}
	}
	var name *net.DNSError
	switch text := err.Error(); {
	case silent && secure:
		return fail("has not answered within %v: it hangs, or its port does not speak TLS", c.silence)
	case silent:
		return fail("has not answered within %v", c.silence)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("refuses the connection: sequins does not run there, or listens at another address")
	case errors.As(err, &name) && name.IsNotFound:
		return fail("cannot be found: there is no host named %q", name.Name)
	case errors.As(err, new(tls.RecordHeaderError)):
		return fail("does not speak TLS: use http://%s", strings.TrimPrefix(c.shown, "https://"))
	case alertOf(err) != "":
		return fail("refuses the TLS connection (%s): if it wants a certificate of its clients, name one that is valid with --certificate and --certificate-key", alertOf(err))
	case strings.Contains(text, `malformed HTTP response "\x15`): // an alert of TLS
		return c.speaksTLS(err)
	case closed, strings.Contains(text, "server closed idle connection"):
		return fail("closes the connection without an answer: it is not sequins, speaks TLS (https://), or shuts down")
	}
	if text := certificateProblem(err); text != "" {
		return fail("%s", text)
	}
	return fail("cannot be reached: %v", err)
}

// speaksTLS returns the error for a node with TLS that was asked without.
func (c *Node) speaksTLS(err error) error {
	host := strings.TrimPrefix(c.shown, "http://")
	return &NodeError{Kind: ErrUnreachable, URL: c.shown, cause: err,
		text: fmt.Sprintf("speaks TLS: use https://%s, with --ca FILE if no public authority has signed its certificate", host)}
}

// refusal returns why a connection on which nothing is sent ends. The kernel may lose the alert of one on which a request was sent: with TLS 1.3, the
// node has not checked the client's certificate then.
func (c *Node) refusal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	u, err := url.Parse(c.url)
	if err != nil {
		return err
	}
	dialer := tls.Dialer{Config: c.transport.TLSClientConfig}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // by cancel at the latest
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// alertOf returns the alert of TLS that the node has sent, "" if an error is another one.
func alertOf(err error) string {
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// certificateProblem describes what is wrong with the certificate of a node and what to do about it, "" if it is something else.
func certificateProblem(err error) string {
	failed, is := errors.AsType[*tls.CertificateVerificationError](err)
	if !is {
		return ""
	}
	var invalid x509.CertificateInvalidError
	remedy := ""
	switch {
	case errors.As(failed.Err, new(x509.UnknownAuthorityError)):
		remedy = ": name the file with the certificate of its issuer with --ca"
	case errors.As(failed.Err, new(x509.HostnameError)):
		remedy = ": use a name that it is for, or issue a certificate for this one"
	case errors.As(failed.Err, &invalid) && invalid.Reason == x509.Expired:
		remedy = ": replace it ([tls] certificate), or set the clock of this machine"
	}
	return "has a certificate that cannot be used: " + term.Escape([]byte(failed.Err.Error())) + remedy
}

// brokenOff returns the error for an answer that ended too early.
func (c *Node) brokenOff(err error) error {
	switch {
	case errors.Is(err, errSilent):
		return &NodeError{Kind: ErrUnreachable, URL: c.shown, cause: err, text: fmt.Sprintf("has sent nothing for %v, in the middle of an answer", c.silence)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &NodeError{Kind: ErrUnreachable, URL: c.shown, cause: err, text: "has broken off its answer: try again, or ask another node"}
}
