package client

import (
	"errors"
	"fmt"
	"strings"
)

// The reasons why a read has no value. Errors of a Client wrap one of them, or the error of the context.
var (
	// ErrNotFound means that the version does not have the key. Value.Version is that version.
	ErrNotFound = errors.New("no such key")
	// ErrNoDB means that the nodes have no such database.
	ErrNoDB = errors.New("no such database")
	// ErrDenied means that the token is missing, unknown, or not valid for the database.
	ErrDenied = errors.New("the token does not permit this read")
	// ErrBehind means that no node serves a version as new as the session has seen. It can be retried.
	ErrBehind = errors.New("no node serves the version that the session has seen")
	// ErrTooLarge means that the value or the batch exceeds a limit of the client or of the nodes.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable means that no node gave a usable answer. It can be retried.
	ErrUnavailable = errors.New("no node gave a usable answer")
	// ErrInvalid means that an argument cannot be sent: the name of the database, or a key of more than 65536 bytes.
	ErrInvalid = errors.New("invalid argument")
	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("the client is closed")
)

// maxListed is the number of attempts that an error lists.
const maxListed = 8

// errorOf returns the error of a call from its failures, the last round of which counts. Of a failure it does not repeat what is said already.
func errorOf(db string, all []*attempt, ended error) error {
	kind := kindOf(all)
	var list strings.Builder
	for i, f := range all {
		if i == maxListed {
			fmt.Fprintf(&list, "; and %d more", len(all)-i)
			break
		}
		text := strings.TrimPrefix(f.err.Error(), kind.Error()+": ")
		fmt.Fprintf(&list, "; %s: %s", f.node.addr, strings.TrimPrefix(text, "dial tcp "+f.node.addr+": "))
	}
	if ended != nil {
		kind = fmt.Errorf("%w: %w", kind, ended)
	}
	return fmt.Errorf("reading %s: %w%s", db, kind, &list)
}

// kindOf returns the reason that a call reports. What only a node of the map says of a db is not believed, because
// its address may belong to another program by now.
func kindOf(all []*attempt) error {
	kind := ErrUnavailable
	for _, f := range all {
		switch {
		case f.final && errors.Is(f.err, ErrTooLarge):
			return ErrTooLarge
		case f.temporary && errors.Is(f.err, ErrBehind):
			kind = ErrBehind
		case f.node.seed && errors.Is(f.err, ErrNoDB):
			return ErrNoDB
		case f.node.seed && errors.Is(f.err, ErrDenied):
			return ErrDenied
		}
	}
	return kind
}
