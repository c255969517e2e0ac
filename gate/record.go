package gate

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Record is what a gate remembers over restarts.
type Record struct {
	Last *Last `json:"last,omitempty"` // nil if it is not known
	// Marks are those of the versions with the greatest ids, ascending by id, at most maxMarks.
	Marks []Mark `json:"marks,omitempty"`
}

// Last are the totals of the version that is or was served last.
type Last struct {
	Version string `json:"version"` // its id
	Totals
	Blind bool `json:"blind,omitempty"` // see judged
}

// Mark says what has become of a version, so that it does not depend on whether the version is still on the disk.
type Mark struct {
	Version string `json:"version"` // its id
	Plan    string `json:"plan"`    // other blocks of the same id are another version
	Served  bool   `json:"served,omitempty"`
	// Held is why the version is held; "" if it is not. Rules is Rules.Fingerprint at that time, and Against the version
	// that was served.
	Held    string `json:"held,omitempty"`
	Rules   string `json:"rules,omitempty"`
	Against string `json:"against,omitempty"`
}

const (
	maxMarks = 100
	// maxMarkReason limits Mark.Held, in bytes.
	maxMarkReason = 300
)

// ParseRecord parses what Gate.Save has saved; nil is the zero Record.
func ParseRecord(data []byte) (r Record, err error) {
	if data == nil {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, err
	}
	ascending := slices.IsSortedFunc(r.Marks, func(a, b Mark) int { return strings.Compare(a.Version, b.Version) })
	if len(r.Marks) > maxMarks || !ascending {
		return Record{}, errors.New("too many marks, or not in their order")
	}
	return r, nil
}

// HeldIDs returns the ids of the versions that are held, ascending.
func (r Record) HeldIDs() (ids []string) {
	for _, m := range r.Marks {
		if m.Held != "" {
			ids = append(ids, m.Version)
		}
	}
	return ids
}

// ServedIDs returns the ids of the versions that have been served, ascending.
func (r Record) ServedIDs() (ids []string) {
	for _, m := range r.Marks {
		if m.Served {
			ids = append(ids, m.Version)
		}
	}
	return ids
}

// Served records that a version is served. Judge does so, too; without rules, it is not called.
func (g *Gate) Served(id, plan string) { g.setMark(Mark{Version: id, Plan: plan, Served: true}) }

// Marked reports whether it is known of a version by a plan that it was served or held.
func (g *Gate) Marked(id, plan string) bool { return g.mark(id, plan) != Mark{} }

// HeldMarks returns the marks of the versions that would be held again by the present rules, on a node that serves a
// version.
func (g *Gate) HeldMarks(served string) (held []Mark) {
	for _, m := range g.record.Marks {
		if g.isMarked(m, Candidate{Served: served, Older: m.Version < served}) {
			held = append(held, m)
		}
	}
	return held
}

// Save passes the record to write if it has changed since the last time that write succeeded.
func (g *Gate) Save(write func(data []byte) error) error {
	if !g.changed {
		return nil
	}
	data, err := json.Marshal(g.record)
	if err == nil {
		err = write(data)
	}
	g.changed = err != nil
	return err
}

// mark returns the mark of a version by a plan; the zero Mark if there is none.
func (g *Gate) mark(id, plan string) Mark {
	if i, found := g.find(id); found && g.record.Marks[i].Plan == plan {
		return g.record.Marks[i]
	}
	return Mark{}
}

func (g *Gate) find(id string) (int, bool) {
	return slices.BinarySearchFunc(g.record.Marks, id, func(m Mark, id string) int { return strings.Compare(m.Version, id) })
}

// setMark replaces the mark of a version.
func (g *Gate) setMark(m Mark) {
	m.Held = strings.ToValidUTF8(m.Held[:min(len(m.Held), maxMarkReason)], "")
	i, found := g.find(m.Version)
	switch {
	case found && g.record.Marks[i] == m:
		return
	case !found && i == 0 && len(g.record.Marks) >= maxMarks:
		return // it would be the first one to be removed, and the record would be written at each look
	case found:
		g.record.Marks[i] = m
	default:
		g.record.Marks = slices.Insert(g.record.Marks, i, m)
	}
	if more := len(g.record.Marks) - maxMarks; more > 0 {
		g.record.Marks = slices.Delete(g.record.Marks, 0, more)
	}
	g.changed = true
}

// unmark removes the mark of a version.
func (g *Gate) unmark(id string) {
	if i, found := g.find(id); found {
		g.record.Marks = slices.Delete(g.record.Marks, i, i+1)
		g.changed = true
	}
}

// remember records which version is served. Its totals may be known from before a restart.
func (g *Gate) remember(c Candidate, j *judged) {
	g.Served(c.ID, c.Plan)
	last := g.record.Last
	switch {
	case j.totals != nil:
		now := Last{c.ID, *j.totals, j.blind}
		if last == nil || *last != now {
			g.record.Last, g.changed = &now, true
		}
	case last != nil && last.Version != c.ID:
		g.record.Last, g.changed = nil, true
	}
}
