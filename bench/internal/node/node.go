// Package node runs the HTTP server of sequins without the rest of a node, with blocks that it is given.
package node

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/data"
	"sequins/blocks"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/proxy"
	"sequins/reads"
	"sequins/server"
	"sequins/version"
)

// Node describes a node.
type Node struct {
	Partitions int
	Blocks     []string // paths, of the first partitions
	Peer       string   // the address of a node that has the other partitions, if any
	Debug      string   // a second address, for metrics and profiles, if any
}

// Start starts this program again with -be and a description that Serve takes.
func (n Node) Start(cpus string) (*daemon.Daemon, error) {
	be, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	return daemon.Self(cpus, "-be", string(be))
}

// catalog has one db.
type catalog struct{ set *version.Set }

func (c catalog) Set(db []byte) *version.Set {
	if string(db) == data.DB {
		return c.set
	}
	return nil
}

func (c catalog) Status() status.Status        { return status.Status{} }
func (c catalog) MayExist([]byte) bool         { return false }
func (c catalog) Events(string) []status.Event { return nil }
func (c catalog) Ready(string) (bool, string)  { return true, "" }

// others is a version whose partitions are all on one other node.
type others struct {
	version.Solo
	peers []string
}

func (o others) Peers(int) []string { return o.peers }

// Serve is a node at an address until the process ends.
func Serve(be, addr string) error {
	var n Node
	if err := json.Unmarshal([]byte(be), &n); err != nil {
		return err
	}
	m := metrics.New()
	o := reads.Options{Metrics: m.Server}
	v := version.New(version.Info{DB: data.DB, Content: data.Content, Partitions: n.Partitions, Following: others{peers: []string{n.Peer}}})
	if n.Peer != "" {
		o.Proxy = proxy.New(proxy.Options{Metrics: m.Proxy, Timeout: 10 * time.Second, StageTimeout: 5 * time.Second,
			Upstream: func(string) bool { return true }, Logger: slog.Default()})
	}
	for p, path := range n.Blocks {
		b, err := blocks.Open(path)
		if err != nil {
			return err
		}
		if err := v.Put(p, b); err != nil {
			return err
		}
	}
	if n.Debug != "" {
		go http.ListenAndServe(n.Debug, server.DebugHandler(server.DebugOptions{Metrics: m, Pprof: true})) //nolint:errcheck // whoever asks will see
	}
	set := version.NewSet(data.DB)
	set.Prepare(v)
	if err := set.Activate(data.Content.Input); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	c := catalog{set}
	return server.New(c, reads.New(c, o), server.Options{Metrics: m.Server}).Serve(ln)
}
