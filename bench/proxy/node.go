package main

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"sequins/bench/internal/data"
	"sequins/blocks"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/proxy"
	"sequins/reads"
	"sequins/server"
	"sequins/version"
)

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

func (c catalog) Ready(string) (bool, string) { return true, "" }

// others is a version whose partitions are all on one other node.
type others struct {
	version.Solo
	peers []string
}

func (o others) Peers(int) []string { return o.peers }

// node serves until the process ends: with a block, or without one and with a peer.
func node(kind, addr string) error {
	m := metrics.New()
	o := reads.Options{Metrics: m.Server}
	v := version.New(version.Info{DB: data.DB, Content: data.Content, Partitions: 1, Following: others{peers: []string{*peer}}})
	if kind == "holder" {
		b, err := blocks.Open(*block)
		if err != nil {
			return err
		}
		if err := v.Put(0, b); err != nil {
			return err
		}
	} else {
		o.Proxy = proxy.New(proxy.Options{Metrics: m.Proxy, Timeout: 10 * time.Second, StageTimeout: 5 * time.Second,
			Upstream: func(string) bool { return true }, Logger: slog.Default()})
		go http.ListenAndServe(*debug, server.DebugHandler(server.DebugOptions{Metrics: m, Pprof: true})) //nolint:errcheck // whoever asks will see
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
