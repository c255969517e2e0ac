package zk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
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
	s, err := Connect(o)
	if err != nil {
		return r, err
	}
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

func (s *Session) probe(conn *zk.Conn) (r ProbeReport, err error) {
	missing, err := s.missing(conn)
	if err != nil {
		return r, err
	}
	r.Existed = len(missing) == 0
	if r.Nodes, _, err = conn.Children(s.absolute(NodesDir)); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return r, fmt.Errorf("listing %s: %w", s.absolute(NodesDir), err)
	}
	missing = append(missing, s.absolute("check-"+rand.Text()))
	var ops []any
	for _, p := range missing {
		ops = append(ops, &zk.CreateRequest{Path: p, Acl: s.acl})
	}
	for i := range missing {
		ops = append(ops, &zk.DeleteRequest{Path: missing[len(missing)-1-i], Version: -1})
	}
	results, err := conn.Multi(ops...)
	for i, result := range results { // the first error is the cause of the others
		if result.Error != nil && i < len(missing) {
			return r, fmt.Errorf("creating %s: %w", missing[i], result.Error)
		}
	}
	if err != nil {
		return r, fmt.Errorf("creating znodes below %s: %w", s.o.Root, err)
	}
	return r, nil
}

// missing returns the root and its parents as far as they do not exist, from the top.
func (s *Session) missing(conn *zk.Conn) (paths []string, err error) {
	at := "/"
	for part := range strings.SplitSeq(strings.Trim(s.o.Root, "/"), "/") {
		at = path.Join(at, part)
		exists, _, err := conn.Exists(at)
		if err != nil {
			return nil, fmt.Errorf("looking at %s: %w", at, err)
		}
		if !exists {
			paths = append(paths, at)
		}
	}
	return paths, nil
}
