package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sequins/internal/content"
)

// stateName is the file in a db's directory that holds its State. No version can have this name.
const stateName = "STATE.json"

const maxState = 4 << 20 // bytes

var stateFile = fileKind{name: "state", version: 1, limit: maxState}

const (
	// MaxFormer, MaxVerdicts and MaxFailures are the numbers of these that a State can have.
	MaxFormer, MaxVerdicts, MaxFailures = 100, 100, 100
	// MaxReason is the number of bytes of a reason that a State, or a report to other nodes, keeps.
	MaxReason = 1000
)

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

	unknown map[string]json.RawMessage // members of a later release, by name
}

// Totals are sums over the partitions of a content.
type Totals struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"` // of keys and values
}

// The values of Finding.State.
const (
	Pending = "pending" // it cannot be judged yet, which no State has; next: Passed, Held
	Passed  = "passed"  // it may be advertised and served
	Held    = "held"    // it breaks a rule, here or on another node; next: Passed, if the facts change
)

// A Verdict is what a gate has decided on a content.
type Verdict struct {
	content.Content `json:"content"`
	Finding
}

// A Finding is how a content was judged; see package gate.
type Finding struct {
	State   string          `json:"state"`
	Reason  string          `json:"reason,omitempty"` // in a State, at most MaxReason bytes are kept, as in a report
	Rules   string          `json:"rules,omitempty"`  // the fingerprint of the rules that were applied, at most MaxReason bytes; "" if there were none
	Against content.Content `json:"against,omitzero"` // that it was compared with; zero if there was none
	Vetoed  bool            `json:"vetoed,omitempty"` // a block breaks a rule; no other finding overrules that
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
	path = filepath.Join(path, stateName)
	data, err := stateFile.read(s.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		all, err := s.Contents(db)
		if err == nil && len(all) > 0 {
			err = damaged(path, errors.New("is missing, and there are contents of the db"))
		}
		return State{}, err
	}
	if err != nil {
		return State{}, err
	}
	return decodeState(data, path)
}

// SetState writes the State of a db, atomically and durably, unless it is on the disk already.
func (s *Store) SetState(db string, state State) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	dir := s.at(path)
	dir.mu.Lock()
	defer dir.mu.Unlock()
	if err := s.writeState(dir, state); err != nil {
		return fmt.Errorf("writing the state of db %s: %w", db, err)
	}
	return nil
}

// writeState writes the file of a State in a db's directory, unless it has this content durably. dir.mu is held.
func (s *Store) writeState(dir *dbDir, state State) error {
	data, err := encodeState(state)
	if err != nil {
		return err
	}
	final := filepath.Join(dir.path, stateName)
	now, err := stateFile.read(s.fs, final)
	if err == nil && bytes.Equal(now, data) && !dir.unsynced {
		return nil
	}
	if err != nil { // then the directory may not be there, or not be durable yet
		if err := s.fs.SyncDir(s.data); err != nil { // without data/, the disk is gone: nothing is written to the one below it
			return err
		}
		if err := s.fs.MkdirAll(dir.path); err != nil {
			return err
		}
	}
	err = s.write(final, data)
	dir.unsynced = err != nil
	return err
}

// beginState writes the State of a db before its first content, so that a file that is missing later is known to be lost.
func (s *Store) beginState(db, path string) error {
	dir := s.at(path)
	dir.mu.Lock()
	defer dir.mu.Unlock()
	if _, err := s.fs.Stat(filepath.Join(path, stateName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if all, err := s.Contents(db); err != nil || len(all) > 0 { // it is lost, which State says
		return err
	}
	return s.writeState(dir, State{})
}

// Forget removes the State of a db that is gone, and its directory unless there are contents in it.
func (s *Store) Forget(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	dir := s.at(path)
	dir.mu.Lock()
	defer dir.mu.Unlock()
	err = s.fs.Remove(filepath.Join(path, stateName))
	if err == nil {
		err = s.fs.SyncDir(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting db %s: %w", db, err)
	}
	return s.removeIfEmpty(path)
}

// stateMembers are the members of a State. Those that are zero are left out.
var stateMembers = []string{"served", "totals", "former", "verdicts", "failures", "pin", "marked"}

func encodeState(s State) ([]byte, error) {
	s = s.normal()
	if err := s.validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(s)
	if all := maps.Clone(s.unknown); err == nil && len(all) > 0 {
		if err = json.Unmarshal(body, &all); err == nil {
			body, err = json.Marshal(all)
		}
	}
	if err != nil {
		return nil, err
	}
	return stateFile.seal(body)
}

// decodeState reads the content of the file; path is for its errors.
func decodeState(data []byte, path string) (s State, err error) {
	body, err := stateFile.body(data, path)
	if err != nil {
		return State{}, err
	}
	err = json.Unmarshal(body, &s)
	if err == nil {
		err = json.Unmarshal(body, &s.unknown)
	}
	if s = s.normal(); err == nil {
		err = s.validate()
	}
	if err != nil {
		return State{}, damaged(path, fmt.Errorf("not a state: %w", err))
	}
	maps.DeleteFunc(s.unknown, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(stateMembers, func(known string) bool { return strings.EqualFold(known, name) }) // as encoding/json does
	})
	return s, nil
}

// normal returns s with short reasons, and times in UTC.
func (s State) normal() State {
	s.Verdicts, s.Failures = slices.Clone(s.Verdicts), slices.Clone(s.Failures)
	for i := range s.Verdicts {
		s.Verdicts[i].Reason = Short(s.Verdicts[i].Reason)
	}
	for i := range s.Failures {
		f := &s.Failures[i]
		f.Reason, f.Next = Short(f.Reason), f.Next.UTC()
	}
	return s
}

// Short cuts a reason to MaxReason bytes.
func Short(s string) string { return strings.ToValidUTF8(s[:min(len(s), MaxReason)], "") }

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
