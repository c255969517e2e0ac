package store

import (
	"fmt"
	"path/filepath"
)

// gateName is the file in a db's directory that holds what its gate remembers over restarts (package gate). No version
// can have this name.
const gateName = "_GATE"

// maxGate is the maximum size of that file, in bytes.
const maxGate = 256 << 10

// SetGate records, durably, what the gate of db remembers, which is one line.
func (s *Store) SetGate(db string, data []byte) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeNote(path, gateName, string(data)); err != nil {
		return fmt.Errorf("recording what the gate of db %s remembers: %w", db, err)
	}
	return nil
}

// Gate returns what SetGate has recorded; nil if there is nothing.
func (s *Store) Gate(db string) ([]byte, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return nil, err
	}
	return s.readNote(filepath.Join(path, gateName), maxGate)
}
