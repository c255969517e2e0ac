package node

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxWarnings bounds the list of what is left out, for each database.
const maxWarnings = 20

// A failure is why the source, or a database of it, cannot be listed, and since
// when.
type failure struct {
	err   error
	since time.Time
}

// health is what is known of the source: what of it cannot be listed, and what in
// it cannot be served.
type health struct {
	mu        sync.Mutex
	failures  map[string]failure // by db; of the list of databases under ""
	refreshed time.Time          // last time that the list of databases was read
	warnings  map[string][]string
	absent    map[string]string // what is to be known of dbs that the source does not list

	failed chan struct{} // something has failed
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

// ok takes back what fail said of db. It returns since when db was failing; zero
// if it was not.
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

// failingSince returns since when anything is failing; zero if nothing is.
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

// forget drops what is known of a db that is gone, its error too: nobody lists it
// again.
func (h *health) forget(db string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failures, db)
	delete(h.warnings, db)
	delete(h.absent, db)
}

// setAbsent records a sentence about a db that the source does not list; "" for
// one that it lists.
func (h *health) setAbsent(db, warning string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if warning == "" {
		delete(h.absent, db)
		return
	}
	h.absent[db] = warning
}

// leftOut takes note of names in the source that cannot be served, and of other
// sentences about what is left out, and returns a sentence for each that is new.
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

// A report is a copy of what health knows.
type report struct {
	err              error // of the list of databases
	since, refreshed time.Time
	dbs              map[string]failure // that cannot be listed themselves
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
