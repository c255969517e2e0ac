package discovery

import (
	"fmt"
	"log/slog"
	"time"
)

// MinAbsentLooks is how many listings in this process must lack a db before it is removed, however long
// it has been absent: an unmounted directory or an eventually consistent store may list it again.
const MinAbsentLooks = 3

// An absence describes a db that is served and that the source does not list.
type absence struct {
	since   time.Time // of the first listing that lacked it
	looks   int       // listings that lacked it
	message string
}

// Unseen reports whether a db has not been listed by the source in this process, or not by its last listing.
func (h *Health) Unseen(db string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, absent := h.absent[db]
	return absent || !h.listed[db]
}

// Present records that the source lists a db, which ends an absence.
func (h *Health) Present(db string, log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, absent := h.absent[db]; absent {
		log.Info("database is in the source again")
	}
	h.listed[db] = true
	delete(h.absent, db)
}

// Missing records that the source does not list a db, and reports whether its absence has lasted for timeout.
func (h *Health) Missing(db string, timeout time.Duration, log *slog.Logger) (over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.absent[db]
	if now.since.IsZero() {
		now = absence{since: time.Now()}
		log.Warn("database is not in the source any more; it is served on until it has been absent for long enough",
			"since", now.since, "db_remove_timeout", timeout)
	}
	now.looks++
	now.message = fmt.Sprintf("%s is not in the source since %s; it is served on, and removed when it has been absent for %s, unless it is put back",
		db, now.since.UTC().Format(time.RFC3339), timeout)
	h.absent[db] = now
	delete(h.failures, db)
	return now.looks >= MinAbsentLooks && time.Since(now.since) >= timeout
}
