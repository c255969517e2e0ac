package store

import (
	"fmt"
	"path/filepath"
)

// pinName is the file in a db's directory that holds the last content of the file _PIN in the source. No version can have
// this name.
const pinName = "_PIN"

// maxPin is the maximum size of that file, in bytes.
const maxPin = 128 << 10

// SetPin records, durably, the content of db's pin in the source; none if data is empty.
func (s *Store) SetPin(db string, data []byte) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(data) == 0 {
		err = s.removeNote(path, pinName)
	} else {
		err = s.writeNote(path, pinName, string(data))
	}
	if err != nil {
		return fmt.Errorf("recording the pin of db %s: %w", db, err)
	}
	return nil
}

// Pin returns what SetPin has recorded, which ends in a newline; nil if there is nothing.
func (s *Store) Pin(db string) ([]byte, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return nil, err
	}
	return s.readNote(filepath.Join(path, pinName), maxPin)
}
