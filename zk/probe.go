package zk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"sequins/zk/internal/wire"
)

// A ProbeReport is what Probe has found.
type ProbeReport struct {
	// Existed reports whether the root exists.
	Existed bool
	// Nodes are the names of the znodes of nodes, see ParseNode.
	Nodes []string
}

// Probe begins a session, authenticates, and tries whether znodes can be created and deleted below the root: in one transaction, which
// leaves nothing behind. It does not wait longer than ctx.
func Probe(ctx context.Context, o Options) (r ProbeReport, err error) {
	o.Logger = slog.New(slog.DiscardHandler)
	s := Connect(o)
	defer func() { err = errors.Join(err, s.Close()) }()
	conn := s.await(ctx)
	if conn == nil {
		if last := s.Status().LastError; last != "" {
			return r, errors.New(last)
		}
		return r, fmt.Errorf("no session: %w", context.Cause(ctx))
	}
	stop := context.AfterFunc(ctx, conn.Close) // fails the requests
	defer stop()
	return s.probe(conn)
}

func (s *Session) probe(conn *wire.Conn) (r ProbeReport, err error) {
	missing, err := s.missing(conn)
	if err != nil {
		return r, err
	}
	r.Existed = len(missing) == 0
	if r.Nodes, _, err = conn.Children(s.absolute(NodesDir), false); err != nil && !errors.Is(err, wire.NoNode) {
		return r, fmt.Errorf("listing %s: %w", s.absolute(NodesDir), err)
	}
	missing = append(missing, s.absolute("check-"+rand.Text()))
	var ops []wire.Op
	for _, p := range missing {
		ops = append(ops, wire.Create{Path: p, ACL: s.acl})
	}
	for i := range missing {
		ops = append(ops, wire.Delete{Path: missing[len(missing)-1-i], Version: -1})
	}
	failed, err := conn.Multi(ops...)
	if 0 <= failed && failed < len(missing) {
		return r, fmt.Errorf("creating %s: %w", missing[failed], err)
	}
	if err != nil {
		return r, fmt.Errorf("creating znodes below %s: %w", s.o.Root, err)
	}
	return r, nil
}

// missing returns the root and its parents as far as they do not exist, from the top.
func (s *Session) missing(conn *wire.Conn) (paths []string, err error) {
	at := "/"
	for part := range strings.SplitSeq(strings.Trim(s.o.Root, "/"), "/") {
		at = path.Join(at, part)
		exists, _, err := conn.Exists(at, false)
		if err != nil {
			return nil, fmt.Errorf("looking at %s: %w", at, err)
		}
		if !exists {
			paths = append(paths, at)
		}
	}
	return paths, nil
}
