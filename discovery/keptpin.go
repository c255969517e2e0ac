package discovery

import (
	"sequins/pin"
	"sequins/store"
)

// KeptPin returns the pin of a database that KeepPin has recorded in a store.
func KeptPin(s *store.Store, db string) (f pin.File, err error) {
	data, err := s.Pin(db)
	if err != nil {
		return f, err
	}
	return pin.Parse(data)
}

// KeepPin records, durably, the pin of a database, so that an excluded version does not come back after a restart while
// the source cannot be read.
func KeepPin(s *store.Store, db string, f pin.File) error {
	if f.Equal(pin.File{}) {
		return s.SetPin(db, nil)
	}
	data, err := f.Encode()
	if err != nil {
		return err
	}
	return s.SetPin(db, data)
}
