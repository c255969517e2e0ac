package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/client"
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

// checkSource refuses a node with another source than the configuration, which may be that of another cluster if no flag has named it.
func (p *pinning) checkSource(node *client.Node) error {
	if p.force || p.source.config != "" || p.source.source != "" {
		return nil
	}
	st, err := node.Status(p.ctx)
	if err != nil {
		return ofNode(p.ctx, node, "", err)
	}
	if plainSource(st.Source) != plainSource(p.config.Source) {
		return fmt.Errorf("%s reads %s, and the configuration here has the source %s: name the right one with --source or --config", node.URL(), st.Source, p.config.Source)
	}
	return nil
}

// await waits until all nodes serve what the file asks for, and prints a line for each. A node that refuses to say what it serves is not asked again.
func (p *pinning) await(node *client.Node, report io.Writer) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	progress := term.NewProgress(report, "waiting for the nodes", nil)
	var nodes []string
	var err error
	for {
		lines, late, ferr := p.follow(ctx, node)
		if ferr == nil && late > 0 {
			ferr = fmt.Errorf("%d of %d nodes do not follow", late, len(lines))
		}
		if ctx.Err() == nil || err == nil { // otherwise the time limit has cut the request off
			nodes, err = lines, ferr
		}
		refused, is := errors.AsType[*client.NodeError](err)
		lasts := is && refused.Kind != client.ErrUnreachable && refused.Kind != client.ErrUnavailable
		if err == nil || lasts || sleep.For(ctx, waitPeriod) != nil {
			break
		}
	}
	progress.Stop()
	for _, line := range nodes {
		if _, err := fmt.Fprintln(p.out, line); err != nil {
			return err
		}
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("after %v: %w", p.timeout, err)
	}
	if err != nil {
		return fmt.Errorf("%w; the file is written, and nodes follow it at their next look at the source", err)
	}
	return nil
}

// follow asks once, and returns a line for each node and how many do not follow.
func (p *pinning) follow(ctx context.Context, node *client.Node) (lines []string, late int, err error) {
	st, err := node.Status(ctx)
	if err != nil {
		return nil, 0, ofNode(ctx, node, "", err)
	}
	nodes := append(slices.Sorted(maps.Keys(st.Peers)), st.Node)
	want, db := p.file, st.DBs[p.db]
	want.Version, late = want.Pinned(time.Now()), len(nodes)
	for _, addr := range nodes {
		version := db.Current(addr)
		line := "serves " + version
		newer := slices.DeleteFunc(slices.Sorted(maps.Keys(db.Versions)), func(name string) bool { // that it loads, and has not failed to
			on := db.Versions[name].Nodes[addr]
			return name <= version || on.Error != "" || on.State != status.Available && on.State != status.Building
		})
		switch failed := st.Peers[addr].Error; {
		case failed != "":
			line = "does not answer: " + failed
		case version == "":
			line = "serves no version"
		case !db.PinOn(addr, st.Node).Same(want):
			line += ", and has not read the file yet"
		case !want.Allows(version) || version < p.approved:
			line += ", not yet what is asked for"
		case p.decided == "" && len(newer) > 0: // of unpin
			line += ", not yet version " + newer[len(newer)-1]
		default:
			late--
		}
		lines = append(lines, term.Clean(addr)+" "+term.Clean(line))
	}
	return lines, late, nil
}
