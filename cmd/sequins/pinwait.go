package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/config"
	"sequins/internal/names"
	"sequins/internal/term"
	"sequins/observe/status"
)

// waitFlags select a node to be asked for the status of its cluster.
type waitFlags struct {
	nodeFlags
	wait    bool
	timeout time.Duration
}

// waitPeriod is the interval between two requests for the status.
const waitPeriod = time.Second

func (f *waitFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.wait, "wait", false, "wait until all nodes of the cluster follow")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long --wait waits")
	f.registerNode(cmd)
}

// plainSource returns a source as it is spelled without need.
func plainSource(source string) string {
	return strings.TrimRight(strings.NewReplacer("file://", "", "s3a://", "s3://", "s3n://", "s3://").Replace(source), "/")
}

// reads returns an error if the node reads another source: the configuration that happens to be here may be that
// of another cluster.
func (f *waitFlags) reads(ctx context.Context, c *config.Config) error {
	st, url, err := f.status(ctx)
	if err != nil {
		return err
	}
	if plainSource(st.Source) != plainSource(c.Source) {
		return fmt.Errorf("%s reads %s, and the configuration here has the source %s: name the right one with --source or --config", url, st.Source, c.Source)
	}
	return nil
}

// status asks the node once, and returns its URL, too.
func (f *waitFlags) status(ctx context.Context) (st status.Status, url string, err error) {
	c, err := f.client()
	if err != nil {
		return st, "", err
	}
	defer c.Close()
	if st, _, err = c.Status(ctx); err != nil {
		return st, "", ofNode(ctx, c, "", err)
	}
	return st, c.URL(), nil
}

// settled is longer than nodes answer with the same status: one second for that of the cluster, and another for that of a node in it.
const settled = 2500 * time.Millisecond

// active returns the newest version of a db that a node of the cluster serves. That must not change for a moment: a version
// that goes live now is not the one that somebody has seen to be bad.
func (f *waitFlags) active(ctx context.Context, db string) (string, error) {
	before, err := f.newest(ctx, db)
	if err != nil {
		return "", err
	}
	time.Sleep(settled)
	now, err := f.newest(ctx, db)
	if err == nil && now != before {
		err = fmt.Errorf("version %s of %s has just gone live instead of %s: look whether it is good, and try again if it is not", now, db, before)
	}
	return now, err
}

// newest returns the newest version of a db that a node of the cluster serves, from a status that may be some seconds old.
func (f *waitFlags) newest(ctx context.Context, db string) (string, error) {
	st, url, err := f.status(ctx)
	if err != nil {
		return "", err
	}
	newest := ""
	for _, version := range servedBy(&st, db) {
		newest = max(newest, version)
	}
	if !names.Valid(newest) {
		return "", fmt.Errorf("%s: no node serves a version of %s", url, db)
	}
	return newest, nil
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
	c, err := p.node.client()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(p.ctx, p.node.timeout)
	defer cancel()
	tick := time.NewTicker(waitPeriod)
	defer tick.Stop()
	last := make(map[string]string)
	var late int
	for {
		n, ferr := p.follow(ctx, c, last)
		if ferr == nil && n == 0 {
			return nil
		}
		if ctx.Err() == nil || len(last) == 0 { // otherwise the time limit has cut the request off
			late, err = n, ferr
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("%d of %d nodes do not follow", late, len(last))
			}
			return fmt.Errorf("after %v: %w; the file is written, and nodes follow it at their next look at the source", p.node.timeout, err)
		case <-tick.C:
		}
	}
}

// follow asks once, prints the lines that differ from last, and returns how many nodes do not follow.
func (p *pinning) follow(ctx context.Context, c *client.Node, last map[string]string) (late int, err error) {
	st, _, err := c.Status(ctx)
	if err != nil {
		return 0, err
	}
	nodes := servedBy(&st, p.db)
	maps.DeleteFunc(last, func(addr, _ string) bool { _, there := nodes[addr]; return !there })
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		version := nodes[addr]
		line := "serves " + version
		switch failed := st.Peers[addr].Error; {
		case failed != "":
			line, version = "does not answer: "+failed, ""
		case version == "":
			line = "serves no version"
		case !p.hasRead(st.DBs[p.db].PinOn(addr, st.Node)):
			line, version = line+", and has not read the file yet", ""
		case !p.follows(version, time.Now()):
			line += ", not yet what is asked for"
		}
		if !p.follows(version, time.Now()) {
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

// hasRead reports whether a node that follows a pin has read the file.
func (p *pinning) hasRead(on status.Pin) bool {
	f := p.file
	want := status.Pin{Version: f.Pinned(time.Now()), Exclude: f.Exclude, Approve: f.Approve, Until: f.Until}
	return on.Same(want)
}

// follows reports whether a node that serves a version follows the file.
func (p *pinning) follows(version string, now time.Time) bool {
	pinned := p.file.Pinned(now)
	return version != "" && !slices.Contains(p.file.Exclude, version) && (pinned == "" || pinned == version) && version >= p.approved
}
