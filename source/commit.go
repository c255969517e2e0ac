package source

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Markers of Databricks' transactional commits (DBIO). A job with the id X first
// writes _started_X, then files whose names contain -tid-X-, and finally
// _committed_X:
//
//	{"added": ["part-00000-tid-X-….parquet"], "removed": ["part-00000-tid-W-….parquet"]}
//
// VACUUM deletes files that are not committed, then markers, and writes
// _committed_vacuum<n>, which lists under removed what it will delete next.
//
// Each directory of a partitioned table has markers of its own.
const (
	startedPrefix   = "_started_"
	committedPrefix = "_committed_"
	vacuumPrefix    = committedPrefix + "vacuum"

	// maxCommits bounds the number of commits of a directory.
	maxCommits = 1000
)

// transaction matches the id in the name of a data file.
var transaction = regexp.MustCompile(`-tid-([0-9]+)-`)

// commitSet is the combined content of all commits of a directory.
type commitSet struct {
	dir     string          // relative to the version's, with a slash at the end unless it is that
	ids     map[string]bool // of committed jobs
	started map[string]bool // of jobs that have not committed; their files are ignored
	added   map[string]bool
	removed map[string]bool
}

// commits applies the _started_ and _committed_ markers of all directories.
func (m *markers) commits(ctx context.Context, c *Contents, l *Listing) error {
	byDir := map[string][]Marker{"": nil}
	for _, marker := range c.Hidden {
		if dir, base := path.Split(marker.Name); strings.HasPrefix(base, startedPrefix) || strings.HasPrefix(base, committedPrefix) {
			byDir[dir] = append(byDir[dir], marker)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		if err := m.commitsIn(ctx, dir, byDir[dir], c, l); err != nil || l.Incomplete != "" {
			return err
		}
	}
	return nil
}

// commitsIn applies the markers of one directory. A file that one commit
// removes and another adds is removed, since names are not reused. A file that no
// commit mentions is not data, unless its transaction has no marker at all:
// VACUUM deletes old markers.
func (m *markers) commitsIn(ctx context.Context, dir string, all []Marker, c *Contents, l *Listing) error {
	var committed time.Time // the newest commit
	set := commitSet{dir: dir, ids: map[string]bool{}, started: map[string]bool{}, added: map[string]bool{}, removed: map[string]bool{}}
	n := 0
	for _, marker := range all {
		if !strings.HasPrefix(marker.Name, dir+committedPrefix) {
			continue
		}
		if n++; n > maxCommits {
			return Fault(fmt.Errorf("%s has more than %d files %s%s*", m.src.Path(m.db, m.version), maxCommits, dir, committedPrefix))
		}
		committed = latest(committed, marker.ModTime)
		reason, err := m.readCommit(ctx, marker, &set)
		if err != nil || reason != "" {
			l.Incomplete = reason
			return err
		}
	}
	for _, marker := range all {
		id, started := strings.CutPrefix(marker.Name, dir+startedPrefix)
		switch {
		case !started || set.ids[id]:
		case set.removed[marker.Name], marker.ModTime.Before(committed): // VACUUM has removed the failed job's files, or another job has done its work
			set.started[id] = true
		default:
			l.Incomplete = fmt.Sprintf("there is %s without %s%s: a job is writing the version, or has failed", marker.Name, committedPrefix, id)
			return nil
		}
	}
	l.listed = l.listed || len(set.ids) > 0 && !slices.ContainsFunc(c.Files, func(f File) bool { dirs, _ := partitionPath(f.Name); return dirs != "" })
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
		Added   []string `json:"added"`
		Removed []string `json:"removed"`
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
	if !strings.HasPrefix(marker.Name, set.dir+vacuumPrefix) {
		set.ids[strings.TrimPrefix(marker.Name, set.dir+committedPrefix)] = true
	}
	for _, entry := range commit.Added {
		set.added[m.relative(set.dir, entry)] = true
	}
	for _, entry := range commit.Removed {
		set.removed[m.relative(set.dir, entry)] = true
	}
	return "", nil
}

// relative returns the name of a file listed by a commit in a directory. An entry
// is usually a name, but can be a path or a URI.
func (m *markers) relative(dir, entry string) string {
	if !strings.HasPrefix(entry, "/") && !strings.Contains(entry, "://") {
		return dir + entry
	}
	p := entryPath(entry)
	if rel, ok := m.inside(p); ok {
		return rel
	}
	return dir + path.Base(p)
}

// applyCommits checks that the added files exist, and removes those that are not
// data.
func (m *markers) applyCommits(ctx context.Context, set *commitSet, c *Contents, l *Listing) error {
	for _, name := range slices.Sorted(maps.Keys(set.added)) {
		if set.removed[name] {
			continue
		}
		ok, err := m.exists(ctx, name)
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
	clear(m.listed) // these are the files listed by _SUCCESS
	l.keep(set.counts)
	return nil
}

// counts reports whether a file is data as far as this directory's commits say.
func (s *commitSet) counts(f File) bool {
	if dir, _ := partitionPath(f.Name); dir != s.dir {
		return !s.removed[f.Name]
	}
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
