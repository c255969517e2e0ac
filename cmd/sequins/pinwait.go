package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/internal/names"
	"sequins/status"
)

// waitFlags select a node to be asked for the status of its cluster.
type waitFlags struct {
	server    string
	wait      bool
	timeout   time.Duration
	tokenPath string
	files     config.TLS
}

// waitPeriod is the interval between two requests for the status.
const waitPeriod = time.Second

func (f *waitFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "`address` (host:port) or URL of any node of the cluster")
	flags.BoolVar(&f.wait, "wait", false, "wait until all nodes of --server's cluster follow")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long --wait waits")
	flags.StringVar(&f.files.CA, "ca", "", "PEM `file` with the CA certificates for an https URL")
	flags.StringVar(&f.files.Certificate, "certificate", "", "PEM `file` with a client certificate")
	flags.StringVar(&f.files.Key, "key", "", "PEM `file` with the key of --certificate")
	flags.StringVar(&f.tokenPath, "token-file", "", "`file` with a token, or - for the standard input (default: environment variable "+tokenVariable+")")
}

func (f *waitFlags) check() error {
	if f.wait && f.server == "" {
		return usageError{errors.New("--wait needs --server")}
	}
	return nil
}

// client returns a client of the node. It must be closed by CloseIdleConnections.
func (f *waitFlags) client() (*statusClient, error) {
	base, secure, err := nodeURL([]string{f.server}, f.files)
	if err != nil {
		return nil, err
	}
	token, err := ownToken(f.tokenPath)
	if err != nil {
		return nil, err
	}
	return &statusClient{base: base, token: token, http: &http.Client{Timeout: statusTimeout, Transport: &http.Transport{TLSClientConfig: secure}}}, nil
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
	select {
	case <-time.After(settled):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	now, err := f.newest(ctx, db)
	if err == nil && now != before {
		err = fmt.Errorf("version %s of %s has just gone live instead of %s: look whether it is good, and try again if it is not", now, db, before)
	}
	return now, err
}

// newest returns the newest version of a db that a node of the cluster serves, from a status that may be some seconds old.
func (f *waitFlags) newest(ctx context.Context, db string) (string, error) {
	s, err := f.client()
	if err != nil {
		return "", err
	}
	defer s.http.CloseIdleConnections()
	st, err := s.ask(ctx)
	if err != nil {
		return "", err
	}
	newest := ""
	for _, version := range servedBy(&st, db) {
		newest = max(newest, version)
	}
	if !names.Valid(newest) {
		return "", fmt.Errorf("%s: no node serves a version of %s", s.base, db)
	}
	return newest, nil
}

// servedBy returns the version of a db that each node of the cluster serves, "" for none.
func servedBy(st *status.Status, db string) map[string]string {
	nodes := map[string]string{st.Node: ""}
	for addr := range st.Peers {
		nodes[addr] = ""
	}
	for addr := range nodes {
		nodes[addr] = st.DBs[db].Current(addr)
	}
	return nodes
}

// await prints a line for each change of a node, until all nodes serve what the file asks for.
func (p *pinning) await() error {
	s, err := p.node.client()
	if err != nil {
		return err
	}
	defer s.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(p.ctx, p.node.timeout)
	defer cancel()
	tick := time.NewTicker(waitPeriod)
	defer tick.Stop()
	last := make(map[string]string)
	var late int
	for {
		n, ferr := p.follow(ctx, s, last)
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
func (p *pinning) follow(ctx context.Context, s *statusClient, last map[string]string) (late int, err error) {
	st, err := s.ask(ctx)
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
			if _, err := fmt.Fprintf(p.out, "%s %s\n", plain(addr), plain(line)); err != nil {
				return late, err
			}
		}
	}
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
