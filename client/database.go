package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// database is what the client knows of one db.
type database struct {
	c    *Client
	name string

	current    atomic.Pointer[partitions] // nil until the first map has arrived
	due        atomic.Int64               // when the map is requested again, by the client's clock
	earliest   atomic.Int64               // not before
	refreshing atomic.Bool
}

const (
	// minRefresh is the time between two requests for a map, however often nodes fail or answer from other versions.
	minRefresh = time.Second
	// refreshAttempts is the number of nodes that one refresh asks.
	refreshAttempts = 4
)

// suspect makes the map be requested soon, because an answer shows that it may be out of date.
func (d *database) suspect() {
	d.due.Store(d.earliest.Load())
	d.refreshIfDue()
}

// refreshIfDue requests the map in the background if it is due.
func (d *database) refreshIfDue() {
	if d.c.opts.SeedsOnly || int64(d.c.now()) < d.due.Load() || !d.refreshing.CompareAndSwap(false, true) {
		return
	}
	if !d.c.spawn(d.refresh) {
		d.refreshing.Store(false)
	}
}

// refresh requests the map from one node after the other until one answers.
func (d *database) refresh() {
	ctx, cancel := context.WithTimeout(d.c.ctx, d.c.opts.Timeout)
	defer cancel()
	route := d.c.route(d, nil)
	for _, n := range route[:min(refreshAttempts, len(route))] {
		if ctx.Err() != nil {
			break
		}
		if m, err := d.fetchFrom(ctx, n); err == nil {
			n.answered()
			d.current.Store(m)
			break
		}
	}
	pause := d.c.opts.RefreshPeriod * 3 / 4
	pause += rand.N(pause*2/3 + 1)
	d.earliest.Store(int64(d.c.now() + minRefresh))
	d.due.Store(int64(d.c.now() + pause))
	d.refreshing.Store(false)
}

// fetchFrom requests the map from one node.
func (d *database) fetchFrom(ctx context.Context, n *node) (*partitions, error) {
	of := &call{c: d.c, path: "/" + d.name + "/?partitions", limit: maxMap, late: newLateness(0)} // which nobody uses
	a := of.newAttempt(n)
	err := a.try(ctx)
	switch {
	case errors.Is(err, errNoConnection):
		return nil, err
	case err != nil:
		n.fail(d.c.now())
		return nil, err
	case a.status != 200:
		return nil, a.refusal()
	}
	parsed, partitioner, err := parseMap(a.data, d.name, d.c.scheme, n.addr)
	if err != nil {
		return nil, err
	}
	m := &partitions{version: parsed.Version, partitioner: partitioner, replicas: parsed.Replicas}
	for i, addr := range parsed.Nodes {
		n := d.c.node(addr)
		n.zone.Store(int32(d.c.opts.zoneOf(parsed, i)))
		m.nodes = append(m.nodes, n)
	}
	return m, nil
}
