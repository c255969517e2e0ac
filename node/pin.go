package node

import (
	"time"

	"sequins/discovery"
	"sequins/pin"
	"sequins/status"
	"sequins/version"
)

// keptPin returns the pin that was last read before a restart.
func (d *db) keptPin() pin.File {
	f, err := discovery.KeptPin(d.node.o.Store, d.name)
	if err != nil {
		d.log.Error("it is not known what was pinned before the restart; the source tells", "error", err)
		return pin.File{}
	}
	return f
}

// followPin takes a pin that was read in the source. If it cannot be recorded, that is tried again at the next look.
func (d *db) followPin(f pin.File) {
	d.pin = f
	if now := d.allowed(); !now.Equal(d.state.Pin) {
		text := "nothing is pinned, excluded or approved any more"
		if p := d.pinStatus(); p != nil {
			text = p.String()
		}
		if f.Version != "" && now.Version == "" {
			text = "the time of the pin to " + f.Version + " is over; " + text
		}
		d.events.Pinned(now.Version, text)
	}
	if d.recordedPin != nil && d.recordedPin.Equal(f) {
		return
	}
	if err := discovery.KeepPin(d.node.o.Store, d.name, f); err != nil {
		d.log.Error("the pin cannot be recorded; a restart needs the source for it", "error", err)
		return
	}
	d.recordedPin = &f
}

// allowed returns what the pin says now.
func (d *db) allowed() version.Pin { return discovery.Allowed(d.pin, time.Now()) }

// keep returns how many versions stay on the disk and open.
func (d *db) keep() int {
	if keep := d.node.reloadable.Load().KeepVersions; keep != nil {
		return keep(d.name)
	}
	return 1
}

// pinStatus returns the pin for the status; nil if there is none.
func (d *db) pinStatus() *status.Pin {
	p, f := d.allowed(), d.pin
	if p.Version == "" && len(p.Excluded) == 0 && len(p.Approved) == 0 {
		return nil
	}
	return &status.Pin{Version: p.Version, Exclude: f.Exclude, Approve: f.Approve, By: f.By, Until: f.Until, Reasons: f.Reasons}
}
