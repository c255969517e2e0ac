package node

import "sequins/loadproc"

// room returns what is known of the disk space for a load of the missing ones of some partitions.
func (d *db) room(l *live, want []int) loadproc.Room {
	r := loadproc.Room{Want: want, Held: l.v.Held()}
	if served := d.live[d.state.Current]; served != nil {
		_, r.Blocks = served.size()
		r.Source = served.manifest.SourceOf(served.v.Held())
	}
	r.Removable = d.state.Removable(l.v.Info().Name)
	return r
}

// shortage returns the room that a load which failed with err lacked, nil if that was not the reason.
func (d *db) shortage(l *loading, err error) *loadproc.Shortage {
	if err == nil {
		return nil
	}
	wanted := make([]bool, l.manifest.Partitions)
	for _, p := range l.want {
		wanted[p] = true
	}
	return d.node.o.Loads.Shortage(err, l.manifest.SourceOf(wanted))
}
