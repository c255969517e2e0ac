package node

import (
	"slices"

	"sequins/internal/sleep"
	"sequins/version"
)

// A switch is recorded in the store before the new version answers requests, so that a restart does not
// go back. If recording fails, for example on a full disk, the node continues to serve the previous
// version and retries the switch with growing pauses. Without a previous version, or if parts of it can
// no longer be read, the node switches without a record and retries only the recording.

// apply applies an event to the state. It records the version of an Activate first.
func (d *db) apply(e version.Event) (version.State, []version.Action) {
	state, actions := version.Next(d.state, e)
	i := slices.IndexFunc(actions, func(a version.Action) bool { return a.Op == version.Activate })
	if i < 0 {
		return state, actions
	}
	name := actions[i].Version
	err := d.record(name)
	switch {
	case err == nil:
		return state, actions
	case !d.mayStay():
		d.log.Error("it cannot be recorded which version is served; a restart may go back from it", "version", name, "error", err)
		return state, actions
	case d.unrecorded == 1:
		d.log.Error("it cannot be recorded which version is served; the version before is served until it can", "version", name, "error", err)
	}
	state = d.state
	state.Unrecorded = true
	return version.Next(state, e)
}

// mayStay reports whether all of the current version can be read, here or from other nodes.
func (d *db) mayStay() bool { return d.state.Current != "" && d.isWhole() }

// record records the served version. If that fails, it schedules another attempt.
func (d *db) record(name string) error {
	err := d.node.o.Store.SetServed(d.name, name)
	if err == nil {
		if d.unrecorded > 0 {
			d.log.Info("it can be recorded again which version is served", "version", name)
		}
		d.unrecorded = 0
		return nil
	}
	d.unrecorded++
	if d.recordDue {
		return err
	}
	d.recordDue = true
	wait := sleep.Backoff(d.unrecorded, minBackoff, maxBackoff)
	d.tellAfter(wait, recordAgain{})
	return err
}

// recordAgain reports that another attempt to record the served version is due.
type recordAgain struct{}

// tell implements message.
func (recordAgain) tell(d *db) {
	d.recordDue = false
	if d.state.Unrecorded {
		d.switchAgain()
		return
	}
	if d.state.Current != "" {
		_ = d.record(d.state.Current) // the switch has logged the error
	}
}

// switchAgain retries a switch that could not be recorded.
func (d *db) switchAgain() {
	d.state.Unrecorded = false
	for name := range d.live {
		d.look(name)
	}
}
