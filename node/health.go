package node

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxWarnings limits the list of ignored entries per database.
const maxWarnings = 20

// A failure is the reason why the source or a database cannot be listed, and since when.
type failure struct {
	err   error
	since time.Time
}

// health is the health of the source: failed listings and ignored entries.
type health struct {
	mu        sync.Mutex
	failures  map[string]failure // by db; "" is the list of databases
	refreshed time.Time          // when the list of databases was last read
	warnings  map[string][]string
	absent    map[string]string // messages about dbs that the source does not list

	failed chan struct{} // signaled after a failure
}

func (h *health) init() {
	h.failures, h.warnings = map[string]failure{}, map[string][]string{}
	h.absent = map[string]string{}
	h.failed = make(chan struct{}, 1)
}

func (h *health) fail(db string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, failing := h.failures[db]
	if !failing {
		f.since = time.Now()
	}
	f.err = err
	h.failures[db] = f
	wake(h.failed)
}

// ok clears the failure of a db. It returns since when the db was failing; zero if it was not.
func (h *health) ok(db string) (since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if db == "" {
		h.refreshed = time.Now()
	}
	since = h.failures[db].since
	delete(h.failures, db)
	return since
}

// failingSince returns since when anything has been failing; zero if nothing is.
func (h *health) failingSince() (since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.failures {
		if since.IsZero() || f.since.Before(since) {
			since = f.since
		}
	}
	return since
}

func (h *health) isFailing(db string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failures[db].err != nil
}

func (h *health) rootFailing() bool { return h.isFailing("") }

// forget drops the state of a removed db.
func (h *health) forget(db string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failures, db)
	delete(h.warnings, db)
	delete(h.absent, db)
}

// setAbsent records a message about a db that the source does not list; "" for a listed one.
func (h *health) setAbsent(db, warning string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if warning == "" {
		delete(h.absent, db)
		return
	}
	h.absent[db] = warning
}

// leftOut records names in the source that are ignored and other messages, and returns the new
// messages.
func (h *health) leftOut(db string, names, also []string) (fresh []string) {
	if len(names) > maxWarnings {
		names = names[:maxWarnings]
	}
	what := "cannot be the name of a database"
	if db != "" {
		what = "cannot be the name of a version of " + db
	}
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%q in the source is left out: this %s", name, what))
	}
	all = append(all, also...)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range all {
		if !slices.Contains(h.warnings[db], w) {
			fresh = append(fresh, w)
		}
	}
	h.warnings[db] = all
	return fresh
}

// A report is a snapshot of health.
type report struct {
	err              error // of the list of databases
	since, refreshed time.Time
	dbs              map[string]failure // dbs whose versions cannot be listed
	warnings         []string
}

func (h *health) report() report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := report{err: h.failures[""].err, since: h.failures[""].since, refreshed: h.refreshed, dbs: maps.Clone(h.failures)}
	delete(r.dbs, "")
	for _, db := range slices.Sorted(maps.Keys(r.dbs)) {
		r.warnings = append(r.warnings, fmt.Sprintf("the versions of %s cannot be listed: %v", db, r.dbs[db].err))
	}
	for _, db := range slices.Sorted(maps.Keys(h.absent)) {
		r.warnings = append(r.warnings, h.absent[db])
	}
	for _, db := range slices.Sorted(maps.Keys(h.warnings)) {
		r.warnings = append(r.warnings, h.warnings[db]...)
	}
	return r
}
