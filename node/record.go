package node

import (
	"slices"

	"sequins/version"
)

// A switch is recorded in the store before anybody is answered from the new version: a restart would go back otherwise.
// While that fails, as on a full disk, the version before is served, and the switch is tried again after growing pauses.

// apply returns the state after an event, and what is to be done. The version of an Activate is recorded.
func (d *db) apply(e version.Event) (version.State, []version.Action) {
	state, actions := version.Next(d.state, e)
	i := slices.IndexFunc(actions, func(a version.Action) bool { return a.Op == version.Activate })
	if i < 0 || d.record(actions[i].Version) {
		return state, actions
	}
	state = d.state
	state.Unrecorded = true
	return version.Next(state, e)
}

// record records which version is served from now on, and reports whether it could.
func (d *db) record(name string) bool {
	err := d.node.o.Store.SetServed(d.name, name)
	if err == nil {
		if d.unrecorded > 0 {
			d.log.Info("it can be recorded again which version is served", "version", name)
		}
		d.unrecorded = 0
		return true
	}
	d.unrecorded++
	if d.unrecorded == 1 {
		d.log.Error("it cannot be recorded which version is served; the version before is served until it can", "version", name, "error", err)
	}
	wait := backoff(d.unrecorded, maxBackoff)
	d.work(func() message {
		d.pause(wait)
		return recordAgain{}
	})
	return false
}

// recordAgain says that the next attempt at a switch is due.
type recordAgain struct{}

// tell implements message.
func (recordAgain) tell(d *db) {
	d.state.Unrecorded = false
	for name := range d.live {
		d.look(name)
	}
}
