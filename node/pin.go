package node

import (
	"log/slog"
	"time"

	"sequins/discovery"
	"sequins/pin"
	"sequins/status"
	"sequins/version"
)

// keptPin returns the pin that was last read before a restart, so that an excluded version does not come back while the
// source cannot be read.
func (d *db) keptPin() pin.File {
	data, err := d.node.o.Store.Pin(d.name)
	if err == nil {
		var f pin.File
		if f, err = pin.Parse(data); err == nil {
			return f
		}
	}
	d.log.Error("it is not known what was pinned before the restart; the source tells", "error", err)
	return pin.File{}
}

// followPin takes a pin that was read in the source. If it cannot be recorded, that is tried again at the next look.
func (d *db) followPin(f pin.File) {
	if !f.Equal(d.pin) {
		d.log.Info("the pin of the database has changed", slog.Group("pin", "version", f.Version, "exclude", f.Exclude,
			"reason", f.Reason, "by", f.By, "until", f.Until))
	}
	d.pin = f
	if d.recordedPin != nil && d.recordedPin.Equal(f) {
		return
	}
	var data []byte
	var err error
	if !f.Equal(pin.File{}) {
		data, err = f.Encode()
	}
	if err == nil {
		err = d.node.o.Store.SetPin(d.name, data)
	}
	if err != nil {
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
	if p.Version == "" && len(p.Excluded) == 0 {
		return nil
	}
	return &status.Pin{Version: p.Version, Exclude: f.Exclude, Reason: f.Reason, By: f.By, Until: f.Until}
}
