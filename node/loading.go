package node

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/load"
	"sequins/load/loadproc"
	"sequins/node/turns"
	"sequins/store"
	"sequins/version"
)

// loads are the loads of a database.
type loads struct {
	db      *common
	keeper  *keeper
	memory  *memory
	running map[content.Input]*loading
}

// Stages of a load that has no turn yet, or has one.
const (
	starting       int32 = iota
	waitingForTurn       // it follows the other nodes
	planning
	copying
	fetching
)

// A loading is a running load.
type loading struct {
	cancel   context.CancelFunc
	progress atomic.Pointer[load.Snapshot]
	stage    atomic.Int32
	ordered  time.Time
	turn     *turns.Turn
	room     loadproc.Room   // and the partitions to load; written before the load's last message
	damaged  []int           // partitions whose block was damaged before it had a plan
	workers  int             // files that are read at a time; 0: as many as there are processors
	known    *store.Manifest // by which it is loaded; nil: it has to be planned
	passed   *store.Manifest // the last one that was refuted
	copies   bool            // it is served, or other nodes serve it: the source may lack it
	alone    bool            // contents with more files are not taken from other nodes: that was tried
	// following is nil while it is starting.
	following version.Following
	fill      *transfer.Run // set with following

	// The following fields belong to the db's goroutine.
	postponed string // why it waits for a time at which it may begin; "" if it does not
	refuted   bool   // ended because another division or input takes its place
	reported  bool   // see reportLoaded
}

// snapshot returns the progress of the load.
func (l *loading) snapshot() load.Snapshot { return *l.progress.Load() }

// waits reports whether a load of an input waits for its turn.
func (lo *loads) waits(in content.Input) bool {
	l := lo.running[in]
	return l != nil && l.stage.Load() == waitingForTurn
}

// knownManifest returns the manifest by which an input has to be loaded: by the latest known division; nil if there is none.
func (lo *loads) knownManifest(in content.Input) *store.Manifest {
	var known *store.Manifest
	if l := lo.db.live[in]; l != nil {
		known = &l.manifest
	} else if dir, err := lo.db.node.o.Store.Dir(lo.db.name, in); err == nil {
		m := dir.Manifest()
		known = &m
	}
	if later := lo.db.records[in].later; later != nil && (known == nil || load.Later(*later, *known)) {
		return later
	}
	return known
}

// enter puts a version into the set by the manifest of its load, unless the one there stays.
func (lo *loads) enter(in content.Input, m store.Manifest) error {
	l, err := newLive(lo.db.name, m, lo.db.records[in].following)
	if err != nil {
		return err
	}
	if old := lo.db.live[in]; lo.db.facts.Planned(in, old != nil && old.content() != l.content()) {
		lo.keeper.insert(l)
		lo.keeper.openBlocks(l)
	}
	return nil
}

// reportLoaded records that the partitions of this node are loaded, once.
func (lo *loads) reportLoaded(in content.Input, l *loading) {
	if l.reported {
		return
	}
	l.reported = true
	outcome, now := l.snapshot(), time.Now()
	if outcome.Started.IsZero() { // no file was read, because all blocks came from other nodes
		outcome.Started = l.ordered
	}
	lo.db.events.Loaded(in.Name, loadproc.Summary(outcome, now), loadproc.Figures(outcome, now)...)
}

// room returns what is known of the disk space for a load of the missing ones of some partitions.
func (lo *loads) room(l *live, want []int) loadproc.Room {
	r := loadproc.Room{Want: want, Held: l.v.Held(), Least: lo.db.records[l.in()].needs}
	if served := lo.db.live[lo.db.facts.Current]; served != nil {
		held := slices.DeleteFunc(served.v.Sizes(), func(size int64) bool { return size == 0 })
		for _, size := range held {
			r.Blocks += size
		}
		r.Source = served.manifest.SourceOf(len(held))
	}
	r.Removable = lo.db.facts.Removable(l.in())
	return r
}

// noteRoom remembers what a load that has ended with err has shown of the room that the version needs. If the disk was too small for it,
// the blocks that it has made are removed, too, unless the version is served or was: the room is for versions that fit.
func (lo *loads) noteRoom(in content.Input, err error) {
	r := lo.db.records[in]
	if err == nil {
		r.needs = 0
	}
	room, is := errors.AsType[*loadproc.RoomError](err)
	if !is || room.Written == 0 { // without a load, there is only an estimate
		return
	}
	r.needs = float64(room.Needs) / float64(max(1, lo.running[in].room.Missing()))
	l := lo.db.live[in]
	if l == nil || lo.db.facts.WasServed(in) {
		return
	}
	lo.keeper.openBlocks(l)
	l.Withdraw()
	for p, open := range l.open {
		if open {
			lo.keeper.drop(l, p)
		}
	}
}
