package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/internal/sleep"
	"sequins/shard"
)

// What a node knows of the others is kept in a file, so that one that starts while ZooKeeper is away can ask them (Join). The file may be lost or be
// old: it is not synced, is written once a minute and after switches, and what is read by it is checked (MayBeUpstream). Nodes of upstream's kind are not in it,
// as their answers do not say what they are from.

const (
	// rememberFactor times Converge, a minute by default, is the longest time between two writes of the file, and minRemember the shortest.
	rememberFactor = 6
	minRemember    = time.Second
	// maxRemembered bounds the size of the file, in bytes.
	maxRemembered = 16 << 20
)

// keepRemembered writes what is known of the others while this node is a member, after each switch, and once more when it leaves.
func (c *Cluster) keepRemembered() {
	var written []byte
	for ended := false; !ended; {
		select {
		case <-time.After(max(rememberFactor*c.o.Converge, minRemember)):
		case <-c.switched:
			_ = sleep.For(c.ctx, minRemember) // for all that switch at the same time, and what the others advertise
		case <-c.ctx.Done():
			ended = true
		}
		data, err := json.Marshal(c.toRemember())
		if err != nil || bytes.Equal(data, written) {
			continue
		}
		if err = os.WriteFile(c.o.Remembered+".tmp", data, 0o644); err == nil {
			err = os.Rename(c.o.Remembered+".tmp", c.o.Remembered)
		}
		if err != nil {
			c.log.Warn("what this node knows of the others cannot be written; without ZooKeeper, a restart does not find them", "error", err)
			continue
		}
		written = data
	}
}

// toRemember returns what is known of the other nodes, also of those that have vanished lately: nodes that stop one after the other do not forget each other.
func (c *Cluster) toRemember() (r remembered) {
	for _, m := range c.Members() {
		if m.Addr != c.o.Addr && m.Settings != nil {
			r.Members = append(r.Members, m.Addr)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.versions {
		all := make(map[content.Content]map[string][]int)
		for _, a := range w.advertisements {
			for _, each := range a.contents {
				if all[each] == nil {
					all[each] = make(map[string][]int)
				}
				all[each][a.addr] = append(all[each][a.addr], a.partition)
				r.Members = append(r.Members, a.addr)
			}
		}
		for each, nodes := range all {
			r.Held = append(r.Held, held{w.db, each, nodes})
		}
	}
	slices.Sort(r.Members)
	r.Members = slices.Compact(r.Members)
	slices.SortFunc(r.Held, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Content.Name, b.Content.Name), cmp.Compare(a.Content.Code(), b.Content.Code()))
	})
	return r
}

// recall makes what was remembered stand in for the view of the others until ZooKeeper has been read.
func (c *Cluster) recall() {
	var r remembered
	data, err := fsys.ReadFile(fsys.OS, c.o.Remembered, maxRemembered)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		r = remembered{}
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("what this node knew of the others before its restart cannot be read; it answers from its own blocks", "error", err)
		}
	}
	r.Members = slices.DeleteFunc(r.Members, func(addr string) bool { return !c.isOther(addr) })
	c.recalled.Store(&r)
	c.away.Store(true)
}

// rememberedOf returns what other nodes advertised of a version, as far as this node remembers it while it is away.
func (c *Cluster) rememberedOf(k key) (all []advertisement) {
	for _, h := range c.recalled.Load().Held {
		if k != (key{h.DB, h.Content.Name}) || !h.Content.Valid() {
			continue
		}
		contents := []content.Content{h.Content}
		for _, addr := range slices.Sorted(maps.Keys(h.Nodes)) {
			for _, p := range h.Nodes[addr] {
				if c.isOther(addr) && p >= 0 && p < shard.MaxPartitions {
					all = append(all, advertisement{holding: holding{p, addr}, contents: contents})
				}
			}
		}
	}
	return all
}

// isOther reports whether an address may be that of another node.
func (c *Cluster) isOther(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return err == nil && addr != c.o.Addr
}
