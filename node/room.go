package node

import (
	"errors"

	"sequins/internal/content"
	"sequins/load/loadproc"
)

// room returns what is known of the disk space for a load of the missing ones of some partitions.
func (lo *loads) room(l *live, want []int) loadproc.Room {
	r := loadproc.Room{Want: want, Held: l.v.Held(), Least: lo.db.records[l.in()].retries.needs}
	if served := lo.db.keeper.live[lo.db.facts.Current]; served != nil {
		_, r.Blocks = served.size()
		r.Source = served.manifest.SourceOf(served.v.Held())
	}
	r.Removable = lo.db.facts.Removable(l.in())
	return r
}

// noteRoom remembers what a load that has ended with err has shown of the room that the version needs. If the disk was too small for it,
// the blocks that it has made are removed, too, unless the version is served or was: the room is for versions that fit.
func (lo *loads) noteRoom(in content.Input, err error) {
	r := &lo.db.records[in].retries
	var room *loadproc.RoomError
	switch r.short = errors.As(err, &room); {
	case r.short:
		r.needs = room.Needs
	case err == nil:
		r.needs = 0
	}
	l := lo.db.keeper.live[in]
	if !r.short || room.Written == 0 || l == nil || lo.db.facts.WasServed(in) {
		return
	}
	lo.db.keeper.openBlocks(l)
	l.Withdraw()
	for p, open := range l.open {
		if open {
			lo.db.keeper.drop(l, p)
		}
	}
}
