package node

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"time"

	"sequins/gate"
	"sequins/store"
	"sequins/transfer"
	"sequins/version"
)

// A gate compares a version with the one that is served, so a node that serves nothing cannot judge, and a node without
// records of former versions does not know which of them were held. Such nodes ask the others.

// surveyTimeout limits how long other nodes are asked. Without an answer a node decides alone.
const surveyTimeout = 3 * time.Second

// peers returns the addresses of the other nodes.
func (n *Node) peers() (addrs []string) {
	if n.o.Server.Peers == nil {
		return nil
	}
	for _, p := range n.o.Server.Peers() {
		addrs = append(addrs, p.Addr)
	}
	return addrs
}

// serveBlocks answers requests of other nodes for surveys, blocks, and what of a version is here.
func (n *Node) serveBlocks(w http.ResponseWriter, req *http.Request, db, query string) (code int, text string) {
	if !transfer.AsksSurvey(query) {
		return n.transfer.Serve(w, req, db, query)
	}
	var s transfer.Survey
	if d := (*n.catalog.Load())[db]; d != nil {
		if told := d.told.Load(); told != nil {
			s = *told
		}
	}
	return s.Serve(w)
}

// tellOthers updates the answer to surveys.
func (d *db) tellOthers() {
	s := transfer.Survey{Version: version.Name(d.state.Current)}
	if s.Version == "" && !d.state.Taken {
		s.Version = version.Name(d.state.Served)
	}
	for _, m := range d.gate.HeldMarks(d.state.Floor()) {
		s.Held = append(s.Held, transfer.Held{Version: version.Name(m.Version), Plan: m.Plan, Reason: m.Held})
	}
	d.told.Store(&s)
}

// takeOver asks the other nodes what they serve of a database with rules of which this node has served nothing. It returns
// the newest version that any of them serves, whose plan is in the store then, or "", and the names of other versions that
// they hold. This node serves that version first, and compares newer ones with it, as the others do.
func (d *db) takeOver() (served string, held []string) {
	addrs := d.node.peers()
	if d.rules.IsZero() || len(addrs) == 0 {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, surveyTimeout)
	defer cancel()
	answers := d.node.transfer.Survey(ctx, addrs, d.name)
	for _, a := range answers {
		served = max(served, a.Version)
	}
	if served == "" {
		return "", nil
	}
	if err := d.takePlan(ctx, served, answers); err != nil {
		d.log.Warn("the plan of the version that other nodes serve cannot be taken over; it is made from the source", "version", served, "error", err)
	}
	for _, a := range answers {
		for _, h := range a.Held {
			if h.Version != served {
				held = append(held, h.Version)
			}
		}
	}
	d.log.Info("other nodes serve a version, which this node serves first", "version", served, "held_by_others", len(held))
	return served, held
}

// takePlan stores the plan of a version from one of the nodes that serve it, unless it is in the store.
func (d *db) takePlan(ctx context.Context, name string, answers map[string]transfer.Survey) error {
	s := d.node.o.Store
	if _, err := s.Dir(d.name, name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed error
	for _, addr := range slices.Sorted(maps.Keys(answers)) {
		if answers[addr].Version != name {
			continue
		}
		state, err := d.node.transfer.Ask(ctx, addr, d.name, name, "", true)
		if err == nil && state.Manifest != nil && state.Manifest.Partitions > 0 {
			return d.storePlan(name, *state.Manifest)
		}
		failed = errors.Join(failed, err)
	}
	if failed == nil {
		failed = errors.New("no node has given it")
	}
	return failed
}

// storePlan stores the plan of another node, where the version may be a revision.
func (d *db) storePlan(name string, m store.Manifest) error {
	m.Version, m.Created = name, time.Now()
	_, err := d.node.o.Store.Create(d.name, name, m)
	return err
}

// askAbout asks the other nodes whether they have held a version that is older than the one that is served, if this node
// does not know that itself, because it was away then or has lost its disk.
func (d *db) askAbout(l *live, c *gate.Candidate) {
	if !c.Older || c.Excused != "" || d.gate.Marked(c.ID, c.Plan) {
		return
	}
	if !l.asked {
		addrs := d.node.peers()
		l.asked, l.asking = true, len(addrs) > 0
		if l.asking {
			d.work(func() message {
				ctx, cancel := context.WithTimeout(d.ctx, surveyTimeout)
				defer cancel()
				return surveyed{l, d.node.transfer.Survey(ctx, addrs, d.name)}
			})
		}
	}
	c.Asking, c.HeldBy = l.asking, l.heldBy
}

// surveyed reports what other nodes say of the versions of a database.
type surveyed struct {
	l       *live
	answers map[string]transfer.Survey
}

// tell implements message.
func (s surveyed) tell(d *db) {
	info := s.l.v.Info()
	s.l.asking = false
	for _, addr := range slices.Sorted(maps.Keys(s.answers)) {
		for _, h := range s.answers[addr].Held {
			if h.Version == version.Name(info.Name) && h.Plan == info.Plan && s.l.heldBy == "" {
				s.l.heldBy = "node " + addr + " has held it: " + h.Reason
			}
		}
	}
	if d.live[info.Name] == s.l {
		d.look(info.Name)
	}
}
