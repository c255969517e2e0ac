package source

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Markers of Databricks' transactional commits (DBIO). A job with the id X first
// writes _started_X, then files whose names contain -tid-X-, and finally
// _committed_X:
//
//	{"added": ["part-00000-tid-X-….parquet"], "removed": ["part-00000-tid-W-….parquet"]}
//
// VACUUM deletes files that are not committed, then markers, and writes
// _committed_vacuum<n>, which lists under removed what it will delete next.
const (
	startedPrefix   = "_started_"
	committedPrefix = "_committed_"
	vacuumPrefix    = committedPrefix + "vacuum"

	// maxCommits bounds the number of commits of a version.
	maxCommits = 1000
)

// transaction matches the id in the name of a data file.
var transaction = regexp.MustCompile(`-tid-([0-9]+)-`)

// commitSet is the combined content of all commits of a version.
type commitSet struct {
	ids     map[string]bool // of committed jobs
	started map[string]bool // of jobs that have not committed; their files are ignored
	added   map[string]bool
	removed map[string]bool
	order   []string // added files, in the order of the commits
}

// commits applies the _started_ and _committed_ markers. A file that one commit
// removes and another adds is removed, since names are not reused. A file that no
// commit mentions is not data, unless its transaction has no marker at all:
// VACUUM deletes old markers.
func (m *markers) commits(ctx context.Context, c *Contents, l *Listing) error {
	set := commitSet{ids: map[string]bool{}, started: map[string]bool{}, added: map[string]bool{}, removed: map[string]bool{}}
	n := 0
	for _, marker := range c.Hidden {
		if !strings.HasPrefix(marker.Name, committedPrefix) {
			continue
		}
		if n++; n > maxCommits {
			return Fault(fmt.Errorf("%s has more than %d files %s*", m.src.Path(m.db, m.version), maxCommits, committedPrefix))
		}
		reason, err := m.readCommit(ctx, marker, &set)
		if err != nil || reason != "" {
			l.Incomplete = reason
			return err
		}
	}
	for _, marker := range c.Hidden {
		id, started := strings.CutPrefix(marker.Name, startedPrefix)
		switch {
		case !started || set.ids[id]:
		case set.removed[marker.Name]: // VACUUM has removed the failed job's files
			set.started[id] = true
		default:
			l.Incomplete = fmt.Sprintf("there is %s without %s%s: a job is writing the version, or has failed", marker.Name, committedPrefix, id)
			return nil
		}
	}
	l.Committed = len(set.ids) > 0
	return m.applyCommits(ctx, &set, c, l)
}

// readCommit adds one commit to the set. reason is why the job is not done, or
// "".
func (m *markers) readCommit(ctx context.Context, marker Marker, set *commitSet) (reason string, err error) {
	b, ok, err := m.read(ctx, marker)
	if err != nil {
		return "", err
	}
	if !ok {
		return marker.Name + " has just been removed", nil
	}
	var commit struct {
		Added   *[]string `json:"added"`
		Removed *[]string `json:"removed"`
	}
	err = json.Unmarshal(b, &commit)
	switch {
	case truncated(err, b):
		return marker.Name + " is truncated", nil
	case err != nil:
		return "", Fault(fmt.Errorf("%s of %s: %w", marker.Name, m.src.Path(m.db, m.version), err))
	case commit.Added == nil && commit.Removed == nil:
		return "", Fault(fmt.Errorf("%s of %s lists neither added nor removed files", marker.Name, m.src.Path(m.db, m.version)))
	}
	if !strings.HasPrefix(marker.Name, vacuumPrefix) {
		set.ids[strings.TrimPrefix(marker.Name, committedPrefix)] = true
	}
	if commit.Added != nil {
		for _, entry := range *commit.Added {
			name := m.relative(entry)
			if !set.added[name] {
				set.added[name] = true
				set.order = append(set.order, name)
			}
		}
	}
	if commit.Removed != nil {
		for _, entry := range *commit.Removed {
			set.removed[m.relative(entry)] = true
		}
	}
	return "", nil
}

// relative returns the name of a file listed by a commit. An entry is usually a
// name, but can be a path or a URI.
func (m *markers) relative(entry string) string {
	if !strings.HasPrefix(entry, "/") && !strings.Contains(entry, "://") {
		return entry
	}
	p := entryPath(entry)
	if rel, ok := m.checker.inside(p); ok {
		return rel
	}
	return path.Base(p)
}

// applyCommits checks that the added files exist, and removes those that are not
// data.
func (m *markers) applyCommits(ctx context.Context, set *commitSet, c *Contents, l *Listing) error {
	for _, name := range set.order {
		if set.removed[name] {
			continue
		}
		ok, err := m.checker.exists(ctx, name)
		if err != nil {
			return err
		}
		if !ok {
			l.Incomplete = fmt.Sprintf("a %s* file lists %s, which is not there", committedPrefix, name)
			return nil
		}
	}
	if err := m.checkNested(c, committedPrefix+"*"); err != nil {
		return err
	}
	clear(m.checker.listed) // these are the files listed by _SUCCESS
	l.keep(set.counts)
	return nil
}

// counts reports whether a file is data.
func (s *commitSet) counts(f File) bool {
	id := ""
	if match := transaction.FindStringSubmatch(f.Name); match != nil {
		id = match[1]
	}
	switch {
	case s.removed[f.Name] || s.started[id]:
		return false
	case s.added[f.Name] || len(s.ids) == 0:
		return true
	}
	return id != "" && !s.ids[id]
}
