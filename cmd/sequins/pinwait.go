package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/names"
	"sequins/internal/sleep"
	"sequins/internal/term"
	"sequins/observe/status"
)

// waitPeriod is the interval between two requests for the status.
const waitPeriod = time.Second

// plainSource returns a source as it is spelled without need.
func plainSource(source string) string {
	return strings.TrimRight(strings.NewReplacer("file://", "", "s3a://", "s3://", "s3n://", "s3://").Replace(source), "/")
}

// status asks the node once for the status of its cluster. A node with another source is an error, unless it may have any.
func (p *pinning) status(ctx context.Context) (st status.Status, err error) {
	c, err := p.node.client()
	if err != nil {
		return st, err
	}
	defer c.Close()
	if st, err = c.Status(ctx); err != nil {
		return st, ofNode(ctx, c, "", err)
	}
	if !p.anySource && plainSource(st.Source) != plainSource(p.config.Source) {
		return st, fmt.Errorf("%s reads %s, and the configuration here has the source %s: name the right one with --source or --config", c.URL(), st.Source, p.config.Source)
	}
	return st, nil
}

// settled is longer than nodes answer with the same status: one second for that of the cluster, and another for that of a node in it.
const settled = 2500 * time.Millisecond

// active returns the newest version of the db that a node of the cluster serves. That must not change for a moment: a version
// that goes live now is not the one that somebody has seen to be bad.
func (p *pinning) active() (string, error) {
	var seen [2]string
	for i := range seen {
		if i > 0 {
			time.Sleep(settled)
		}
		st, err := p.status(p.ctx)
		if err != nil {
			return "", err
		}
		for _, version := range servedBy(&st, p.db) {
			seen[i] = max(seen[i], version)
		}
		if !names.Valid(seen[i]) {
			return "", fmt.Errorf("no node serves a version of %s", p.db)
		}
	}
	if seen[0] != seen[1] {
		return "", fmt.Errorf("version %s of %s has just gone live instead of %s: look whether it is good, and try again if it is not", seen[1], p.db, seen[0])
	}
	return seen[1], nil
}

// servedBy returns the version of a db that each node of the cluster serves, "" for none.
func servedBy(st *status.Status, db string) map[string]string {
	nodes := map[string]string{st.Node: st.DBs[db].Current(st.Node)}
	for addr := range st.Peers {
		nodes[addr] = st.DBs[db].Current(addr)
	}
	return nodes
}

// await prints a line for each change of a node, until all nodes serve what the file asks for.
func (p *pinning) await() error {
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	last := make(map[string]string)
	var late int
	var err error
	for {
		n, ferr := p.follow(ctx, last)
		if ferr == nil && n == 0 {
			return nil
		}
		if ctx.Err() == nil || len(last) == 0 { // otherwise the time limit has cut the request off
			late, err = n, ferr
		}
		if sleep.For(ctx, waitPeriod) != nil {
			if err == nil {
				err = fmt.Errorf("%d of %d nodes do not follow", late, len(last))
			}
			return fmt.Errorf("after %v: %w; the file is written, and nodes follow it at their next look at the source", p.timeout, err)
		}
	}
}

// follow asks once, prints the lines that differ from last, and returns how many nodes do not follow.
func (p *pinning) follow(ctx context.Context, last map[string]string) (late int, err error) {
	st, err := p.status(ctx)
	if err != nil {
		return 0, err
	}
	nodes := servedBy(&st, p.db)
	maps.DeleteFunc(last, func(addr, _ string) bool { _, there := nodes[addr]; return !there })
	want := status.Pin{Version: p.file.Pinned(time.Now()), Exclude: p.file.Exclude, Approve: p.file.Approve, Until: p.file.Until}
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		version, follows := nodes[addr], false
		line := "serves " + version
		switch failed := st.Peers[addr].Error; {
		case failed != "":
			line = "does not answer: " + failed
		case version == "":
			line = "serves no version"
		case !st.DBs[p.db].PinOn(addr, st.Node).Same(want):
			line += ", and has not read the file yet"
		case !want.Allows(version) || version < p.approved:
			line += ", not yet what is asked for"
		default:
			follows = true
		}
		if !follows {
			late++
		}
		if line != last[addr] {
			last[addr] = line
			p.progress.Print(func() { _, err = fmt.Fprintf(p.out, "%s %s\n", term.Clean(addr), term.Clean(line)) })
			if err != nil {
				return late, err
			}
		}
	}
	p.progress.Set(int64(len(nodes)-late), int64(len(nodes)))
	return late, nil
}
