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

// health is what is known of the source: since when it cannot be listed, and
// what in it cannot be served.
type health struct {
	mu        sync.Mutex
	errs      map[string]error // by db; of the list of databases under ""
	since     time.Time        // of the first of them
	refreshed time.Time        // last time that the list of databases was read
	warnings  map[string][]string
	absent    map[string]string // what is to be known of dbs that the source does not list

	failed chan struct{} // something has failed
}

func (h *health) init() {
	h.errs, h.warnings = map[string]error{}, map[string][]string{}
	h.absent = map[string]string{}
	h.failed = make(chan struct{}, 1)
}

func (h *health) fail(db string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.errs) == 0 {
		h.since = time.Now()
	}
	h.errs[db] = err
	wake(h.failed)
}

// ok takes back what fail said of db. If nothing is failing any more since
// now, it returns since when something was.
func (h *health) ok(db string) (since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if db == "" {
		h.refreshed = time.Now()
	}
	return h.clear(db)
}

// clear drops the error of db. If it was the last one, it returns since when
// something was failing. h.mu is held.
func (h *health) clear(db string) (since time.Time) {
	delete(h.errs, db)
	if len(h.errs) > 0 {
		return time.Time{}
	}
	since, h.since = h.since, time.Time{}
	return since
}

func (h *health) failingSince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}

func (h *health) isFailing(db string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.errs[db] != nil
}

func (h *health) rootFailing() bool { return h.isFailing("") }

// forget drops what is known of a db that is gone, its error too: nobody lists it
// again.
func (h *health) forget(db string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clear(db)
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
	err              error
	since, refreshed time.Time
	warnings         []string
}

func (h *health) report() report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := report{since: h.since, refreshed: h.refreshed}
	for _, db := range slices.Sorted(maps.Keys(h.errs)) {
		r.err = h.errs[db]
		break
	}
	for _, db := range slices.Sorted(maps.Keys(h.absent)) {
		r.warnings = append(r.warnings, h.absent[db])
	}
	for _, db := range slices.Sorted(maps.Keys(h.warnings)) {
		r.warnings = append(r.warnings, h.warnings[db]...)
	}
	return r
}
