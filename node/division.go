package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/load"
	"sequins/source"
	"sequins/store"
	"sequins/version"
)

// A node that finds an input with a division on other nodes takes that division, and detects none. Of two divisions, the one that is later
// in the order of detection wins: a record has refuted what comes before it.

// errUnknownSuperset is the error of a load that has to wait for other nodes to answer.
var errUnknownSuperset = errors.New("other nodes hold another content of the version, and do not tell which files it is made from; it is tried again")

// supersetElsewhere returns the manifest of a content that other nodes serve and that has all files of a plan, and more; nil if there is none. The
// error is errUnknownSuperset if the nodes that hold another content do not answer.
func (lo *loads) supersetElsewhere(ctx context.Context, f version.Following, plan store.Manifest) (*store.Manifest, error) {
	files := make([]source.File, len(plan.Files))
	for i, f := range plan.Files {
		files[i] = source.File{Name: f.Name, Size: f.Size, Mark: f.Mark}
	}
	var unknown error
	for c, addrs := range f.Elsewhere() {
		if c.Input == plan.Content().Input {
			continue
		}
		answers, hangs := lo.db.node.transfer.Serving(ctx, addrs)
		served := func(serves map[string]content.Content) bool { return serves[lo.db.name] == c }
		if !slices.ContainsFunc(slices.Collect(maps.Values(answers)), served) {
			if hangs {
				unknown = errUnknownSuperset
			}
			continue
		}
		m := lo.db.askManifest(ctx, addrs, c)
		if m == nil {
			unknown = errUnknownSuperset
		} else if load.Differing(*m, files).Subset() {
			return m, nil
		}
	}
	return nil, unknown
}

// look takes which loads have begun into the facts, and asks for what other nodes hold.
func (lo *loads) look() {
	for in := range lo.db.records {
		lo.lookForDivisions(in)
	}
	for in, l := range lo.running {
		if l.stage.Load() > waitingForTurn {
			lo.db.facts.Begin(in)
		}
	}
}

// askPause is the time after which other nodes that have not given a manifest are asked again: that they give it now is no change in ZooKeeper.
const askPause = 10 * time.Second

// lookForDivisions asks other nodes for the manifests of other divisions of an input, once. For one of which nothing is here, and whose load waits for
// its turn, any division is asked for when they hold it, so that this node can switch to it together with them, and read it from them.
func (lo *loads) lookForDivisions(in content.Input) {
	l, r := lo.db.live[in], lo.db.records[in]
	switch {
	case r.following == nil, l != nil && lo.db.facts.WasServed(in), l == nil && (!lo.waits(in) || r.following.Replicas(0) == 0):
		return
	}
	fresh := slices.DeleteFunc(slices.Collect(maps.Keys(r.following.Elsewhere())), func(c content.Content) bool {
		return c.Input != in || l != nil && c == l.content() || slices.Contains(r.divisions, c)
	})
	if len(fresh) == 0 {
		return
	}
	r.divisions = append(r.divisions, fresh...)
	following := r.following
	lo.db.bg.work(func() message {
		m := lo.db.manifestElsewhere(lo.db.bg.ctx, following, func(c content.Content) bool { return slices.Contains(fresh, c) })
		if m == nil {
			_ = sleep.For(lo.db.bg.ctx, askPause)
		}
		return func() { lo.takeDivision(in, fresh, m) }
	})
}

// takeDivision takes the latest division of an input that other nodes have, by its manifest; nil if they do not give it. A load by an earlier division is
// cancelled, and begins anew by this one.
func (lo *loads) takeDivision(in content.Input, asked []content.Content, m *store.Manifest) {
	l, f := lo.db.live[in], lo.db.records[in]
	if f == nil {
		return
	}
	switch {
	case m == nil || l == nil && !lo.waits(in): // they are asked again
		f.divisions = slices.DeleteFunc(f.divisions, func(c content.Content) bool { return slices.Contains(asked, c) })
		return
	case l == nil:
		_ = lo.enter(in, *m) // the load will fail of an error
		return
	case !load.Later(*m, l.manifest) || f.later != nil && !load.Later(*m, *f.later) || lo.db.facts.WasServed(in):
		return
	}
	lo.db.log.Info("another node has refuted the partitioner of a version, which is loaded anew", "version", in.Name, "partitioner", l.manifest.Partitioner)
	f.later = m
	if running := lo.running[in]; running != nil {
		running.refuted = true
		running.cancel()
	}
}
