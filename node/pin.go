package node

import (
	"time"

	"sequins/observe/status"
	"sequins/version/pin"
)

// followPin keeps a pin that was read in the source; the caller takes it into the facts. It is in force also if it cannot be written: what is excluded is not served on because the disk is full.
func (d *db) followPin(f pin.File) {
	d.pin = f
	if now := d.allowed(); !now.Equal(d.facts.Pin) {
		text := "nothing is pinned, excluded or approved any more"
		if p := d.pinStatus(); p != nil {
			text = p.String()
		}
		if f.Version != "" && now.Version == "" {
			text = "the time of the pin to " + f.Version + " is over; " + text
		}
		d.events.Pinned(now.Version, text)
	}
	text := ""
	if !f.Equal(pin.File{}) {
		data, err := f.Encode()
		if err != nil {
			d.log.Error("bug: the pin cannot be encoded", "error", err)
			return
		}
		text = string(data)
	}
	if text != d.memory.state.Pin {
		d.memory.state.Pin = text
		d.memory.saveSoon()
	}
}

// endPin ends a pin whose time is over although the source cannot be listed.
func (d *db) endPin() {
	if now := d.allowed(); !now.Equal(d.facts.Pin) {
		d.followPin(d.pin)
		d.facts.Pin = now
		d.decide()
		d.keeper.lookAtAll() // which the pin may have excused
	}
}

// allowed returns what the pin says now.
func (d *db) allowed() pin.File { return d.pin.At(time.Now()) }

// pinStatus returns the pin for the status; nil if there is none.
func (d *db) pinStatus() *status.Pin {
	p, f := d.allowed(), d.pin
	if p.Version == "" && len(p.Exclude) == 0 && len(p.Approve) == 0 {
		return nil
	}
	return &status.Pin{Version: p.Version, Exclude: f.Exclude, Approve: f.Approve, By: f.By, Until: f.Until, Reasons: f.Reasons}
}
