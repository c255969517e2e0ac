package discovery

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sequins/internal/sleep"
	"sequins/source"
)

// A Failure is the reason why the source or a database cannot be listed, and since when.
type Failure struct {
	Err   error
	Since time.Time
}

// Health is the health of the source: failed listings, and remarks. It is safe for concurrent use.
type Health struct {
	log *slog.Logger

	mu        sync.Mutex
	failures  map[string]Failure  // by db; "" is the list of databases
	refreshed time.Time           // when the list of databases was last read
	warnings  map[string][]string // remarks about what is in the source, by db

	failed chan struct{} // see Failed
}

// NewHealth returns the health of a source that has not been read yet.
func NewHealth(log *slog.Logger) *Health {
	return &Health{log: log, failures: map[string]Failure{}, warnings: map[string][]string{}, failed: make(chan struct{}, 1)}
}

// Failed receives a value after failures.
func (h *Health) Failed() <-chan struct{} { return h.failed }

// Fail records that the list of databases, or the versions of a db, could not be listed. It logs the first failure, and another reason.
func (h *Health) Fail(db string, err error) {
	h.mu.Lock()
	f, failing := h.failures[db]
	news := !failing || f.Err.Error() != err.Error()
	if !failing {
		f.Since = time.Now()
	}
	f.Err = err
	h.failures[db] = f
	h.mu.Unlock()
	sleep.Wake(h.failed)
	switch lasts := time.Since(f.Since).Round(time.Second); {
	case news && db != "":
		h.log.Error("a database cannot be listed; serving goes on", "db", db, "error", err, "for", lasts)
	case news:
		h.log.Error("the source cannot be listed; serving goes on", "error", err, "for", lasts)
	}
}

// FailingSince returns since when anything has been failing that may pass; zero if nothing is.
func (h *Health) FailingSince() (since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.failures {
		if !source.Lasting(f.Err) && (since.IsZero() || f.Since.Before(since)) {
			since = f.Since
		}
	}
	return since
}

// IsFailing reports whether the versions of a db, or the databases if it is "", cannot be listed.
func (h *Health) IsFailing(db string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failures[db].Err != nil
}

// Forget drops what is known of a db that is not in the source.
func (h *Health) Forget(db string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failures, db)
	delete(h.warnings, db)
}

// Read records that the source or a db of it was listed, and logs what is new of the remarks about it.
func (h *Health) Read(db string, remarks []string) {
	h.mu.Lock()
	if db == "" {
		h.refreshed = time.Now()
	}
	since, before := h.failures[db].Since, h.warnings[db]
	delete(h.failures, db)
	h.warnings[db] = remarks
	h.mu.Unlock()
	switch {
	case since.IsZero():
	case db == "":
		h.log.Info("the source can be listed again", "after", time.Since(since).Round(time.Millisecond))
	default:
		h.log.Info("a database can be listed again", "db", db, "after", time.Since(since).Round(time.Millisecond))
	}
	for _, remark := range remarks {
		if !slices.Contains(before, remark) {
			h.log.Warn(remark)
		}
	}
}

// A Report is a snapshot of Health.
type Report struct {
	Err              error              // of the list of databases
	Since, Refreshed time.Time          // of that error, and when the list was last read
	DBs              map[string]Failure // dbs whose versions cannot be listed
	Warnings         []string
}

// Report returns the health at the moment.
func (h *Health) Report() Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := Report{Err: h.failures[""].Err, Since: h.failures[""].Since, Refreshed: h.refreshed, DBs: maps.Clone(h.failures)}
	delete(r.DBs, "")
	for _, db := range slices.Sorted(maps.Keys(r.DBs)) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the versions of %s cannot be listed: %v", db, r.DBs[db].Err))
	}
	for _, db := range slices.Sorted(maps.Keys(h.warnings)) {
		r.Warnings = append(r.Warnings, h.warnings[db]...)
	}
	return r
}
