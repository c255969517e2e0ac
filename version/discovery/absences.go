package discovery

import (
	"fmt"
	"log/slog"
	"time"
)

// MinAbsentLooks is how many listings in this process must lack a db before it is removed, however long
// it has been absent: an unmounted directory or an eventually consistent store may list it again.
const MinAbsentLooks = 3

// Absences are the databases that are served and that the source does not list. They are for one goroutine.
type Absences struct {
	health *Health
	listed map[string]bool     // dbs that the source has listed since the start of the process
	absent map[string]*absence // by db
}

// An absence describes a db that the source does not list but that is still served.
type absence struct {
	since time.Time // of the first listing that lacked it, maybe before a restart; zero while Unsure
	looks int       // listings of this process that lacked it, without those that were Unsure
}

// NewAbsences returns absences that are shown in h.
func NewAbsences(h *Health) *Absences {
	return &Absences{health: h, listed: make(map[string]bool), absent: make(map[string]*absence)}
}

// Since returns since when the source does not list a db; zero if it does, or if that is not sure.
func (a *Absences) Since(db string) time.Time {
	if now := a.absent[db]; now != nil {
		return now.since
	}
	return time.Time{}
}

// Unseen reports whether a db has not been listed by the source in this process, or not by its last listing.
func (a *Absences) Unseen(db string) bool { return a.absent[db] != nil || !a.listed[db] }

// Present records that the source lists a db, which ends an absence, also one from before a restart.
func (a *Absences) Present(db string, log *slog.Logger) {
	if !a.Unseen(db) {
		return
	}
	a.listed[db] = true
	if a.absent[db] != nil {
		delete(a.absent, db)
		a.health.SetAbsent(db, "")
		log.Info("database is in the source again")
	}
}

// Missing records that the source does not list a db, and reports whether its absence has lasted for timeout. before is since when it was
// absent before a restart; zero if it was not.
func (a *Absences) Missing(db string, before time.Time, timeout time.Duration, log *slog.Logger) (over bool) {
	now := a.absent[db]
	if now == nil || now.since.IsZero() {
		if before.IsZero() {
			before = time.Now()
		}
		now = &absence{since: before}
		a.absent[db] = now
		log.Warn("database is not in the source any more; it is served on until it has been absent for long enough",
			"since", now.since, "db_remove_timeout", timeout)
	}
	now.looks++
	a.health.OK(db)
	a.health.SetAbsent(db, fmt.Sprintf("%s is not in the source since %s; it is served on, and removed when it has been absent for %s, unless it is put back",
		db, now.since.UTC().Format(time.RFC3339), timeout))
	return now.looks >= MinAbsentLooks && time.Since(now.since) >= timeout
}

// Unsure records that the source lists other databases, and neither this one nor any other that is served: they were renamed
// or deleted, or another directory is in the place of the source. This does not count as absence.
func (a *Absences) Unsure(db string, timeout time.Duration, log *slog.Logger) {
	if a.absent[db] == nil {
		a.absent[db] = &absence{}
		log.Warn("none of the databases that are served is in the source, which has others; they are served on")
	}
	a.health.OK(db)
	a.health.SetAbsent(db, fmt.Sprintf("%s is not in the source, and neither is any other database that is served here; it is served on. "+
		"If they were renamed or deleted, there is nothing to do: %s is removed when a database of the source is served and %s have passed. If this is not the source, mount it or put it back",
		db, db, timeout))
}

// Forget removes what is known of a db that has been removed.
func (a *Absences) Forget(db string) {
	delete(a.listed, db)
	delete(a.absent, db)
}
