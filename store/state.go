package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/fsys"
)

// stateName is the file in a db's directory that holds its State. No version can have this name.
const stateName = "STATE.json"

// A State is what a node knows durably of a db beside its blocks. The zero State is that of a db of which nothing is known.
//
// Members of a later release that this one does not know stay as they are when a State is read, changed and written.
type State struct {
	// Served is the content that clients are answered from; zero if there is none. Its blocks may all be on other nodes.
	Served content.Content `json:"served,omitzero"`
	// Totals are those of Served; nil if they are not known.
	Totals *Totals `json:"totals,omitempty"`
	// Former are the contents that were served before, in the order of the switches away from them.
	Former   []content.Content `json:"former,omitempty"`
	Verdicts []Verdict         `json:"verdicts,omitempty"`
	Failures []Failure         `json:"failures,omitempty"`
	// Pin is the text of _PIN in the source when it was last read; "" if there was none.
	Pin string `json:"pin,omitempty"`
	// Marked reports whether a version of the db had a marker of its job.
	Marked bool `json:"marked,omitempty"`
	// Absent is since when the source has not listed the db; zero if it lists it.
	Absent time.Time `json:"absent,omitzero"`

	unknown []member // in the order of their names
}

// Totals are sums over the partitions of a content.
type Totals struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"` // of keys and values
}

// The values of Verdict.State.
const (
	Passed = "passed"
	Held   = "held"
)

// A Verdict is what a gate has decided on a content.
type Verdict struct {
	content.Content `json:"content"`
	State           string          `json:"state"`            // Passed or Held
	Reason          string          `json:"reason,omitempty"` // at most MaxReason bytes are kept
	Rules           string          `json:"rules,omitempty"`  // by which it was judged, at most MaxReason bytes
	Against         content.Content `json:"against,omitzero"` // that it was compared with; zero if there was none
	Vetoed          bool            `json:"vetoed,omitempty"` // a block breaks a rule
}

// A Failure is why an input could not be loaded.
type Failure struct {
	content.Input `json:"input"`
	Kind          string    `json:"kind"`
	Reason        string    `json:"reason,omitempty"` // at most MaxReason bytes are kept
	Attempts      int       `json:"attempts"`
	Next          time.Time `json:"next,omitzero"` // when it is tried again
	By            string    `json:"by,omitempty"`  // what else it depends on, such as options, at most MaxReason bytes
}

// State returns the State of a db that SetState has written last. A file that is damaged, and one that is missing while there are
// contents of the db, is [blocks.ErrCorrupt].
func (s *Store) State(db string) (State, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return State{}, err
	}
	state, data, err := s.readState(db, filepath.Join(path, stateName))
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.states[db]; !ok {
		s.states[db] = data
	} else if !bytes.Equal(known, data) { // somebody else has changed it
		s.states[db] = nil
	}
	return state, err
}

// readState returns a State and the bytes of its file, nil if there is none or an error.
func (s *Store) readState(db, path string) (State, []byte, error) {
	data, err := readFile(s.fs, path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		inputs, err := s.Contents(db)
		if err == nil && len(inputs) > 0 {
			err = &blocks.CorruptError{Path: path, Page: -1, Reason: "is missing, and there are contents of the db"}
		}
		return State{}, nil, err
	}
	if err != nil {
		return State{}, nil, err
	}
	state, err := decodeState(data, path)
	if err != nil {
		return State{}, nil, err
	}
	return state, data, nil
}

// SetState writes the State of a db, atomically and durably, unless it is on the disk already.
func (s *Store) SetState(db string, state State) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	data, err := encodeState(state)
	if err != nil {
		return fmt.Errorf("the state of db %s: %w", db, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.states[db]; known != nil && bytes.Equal(known, data) {
		if _, err := s.fs.Stat(filepath.Join(path, stateName)); err == nil {
			return nil
		}
	}
	if err := s.writeState(db, path, data); err != nil {
		return fmt.Errorf("writing the state of db %s: %w", db, err)
	}
	return nil
}

// writeState writes the file of a State. Until it is known to be durable, nothing is known of the file. s.mu is held.
func (s *Store) writeState(db, path string, data []byte) error {
	s.states[db] = nil
	final := filepath.Join(path, stateName)
	if _, err := s.fs.Stat(final); err != nil { // then the directory may be new, or not be durable yet
		if err := s.fs.MkdirAll(path); err != nil {
			return err
		}
		if err := s.fs.SyncDir(s.data); err != nil {
			return err
		}
	}
	f, err := s.fs.Create(s.tempName(final))
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close(), s.fs.Remove(f.Name()))
	}
	if err := fsys.Publish(s.fs, f, final); err != nil {
		return err
	}
	s.states[db] = data
	return nil
}

// beginState writes the zero State of a db before its first content, so that a file that is missing later is known to be lost. s.mu is held.
func (s *Store) beginState(db, path string) error {
	if _, err := s.fs.Stat(filepath.Join(path, stateName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	inputs, err := s.Contents(db)
	if err != nil || len(inputs) > 0 {
		return err
	}
	data, err := encodeState(State{})
	if err != nil {
		return err
	}
	return s.writeState(db, path, data)
}

// Forget removes the State of a db that is gone, and its directory unless there are contents in it.
func (s *Store) Forget(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, db)
	if err := s.removeState(path); err != nil {
		return fmt.Errorf("forgetting db %s: %w", db, err)
	}
	return s.removeIfEmpty(path)
}

func (s *Store) removeState(path string) error {
	err := s.fs.Remove(filepath.Join(path, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.fs.SyncDir(path)
	}
	return err
}

// idle reports whether nothing is lost with the State of a db without contents.
func (s *State) idle() bool {
	return s.Served == content.Content{} && len(s.Former)+len(s.Verdicts)+len(s.Failures)+len(s.unknown) == 0 && s.Pin == "" && s.Absent.IsZero()
}

// A member is a member of a JSON object.
type member struct {
	name  string
	value []byte
}

func (s *State) validate() error {
	switch {
	case s.Served != content.Content{} && !s.Served.Valid():
		return fmt.Errorf("%q is served", s.Served)
	case s.Totals != nil && (s.Totals.Records < 0 || s.Totals.Bytes < 0):
		return fmt.Errorf("the totals are %+v", *s.Totals)
	case len(s.Former) > MaxFormer || len(s.Verdicts) > MaxVerdicts || len(s.Failures) > MaxFailures:
		return fmt.Errorf("there are %d former contents, %d verdicts and %d failures", len(s.Former), len(s.Verdicts), len(s.Failures))
	case slices.ContainsFunc(s.Former, func(c content.Content) bool { return !c.Valid() }):
		return fmt.Errorf("the former contents are %.1000q", s.Former)
	case !validTime(s.Absent):
		return fmt.Errorf("the db is absent since the year %d", s.Absent.Year())
	}
	for _, v := range s.Verdicts {
		if !v.valid() {
			return fmt.Errorf("a verdict is %.1000q", fmt.Sprint(v))
		}
	}
	for _, f := range s.Failures {
		if !f.valid() {
			return fmt.Errorf("a failure is %.1000q", fmt.Sprint(f))
		}
	}
	return nil
}

func (v *Verdict) valid() bool {
	return v.Valid() && (v.State == Passed || v.State == Held) && len(v.Rules) <= MaxReason && (v.Against == content.Content{} || v.Against.Valid())
}

func (f *Failure) valid() bool {
	return f.Valid() && f.Kind != "" && validWord(f.Kind) && len(f.By) <= MaxReason && f.Attempts >= 0 && validTime(f.Next)
}
