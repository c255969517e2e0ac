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
