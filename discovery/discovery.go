// Package discovery finds the versions of a database that a node can load: it lists the source, inspects the newest
// versions for markers and completeness, waits until versions stay the same whose listing does not show that they are complete,
// and compares what is served, and what nodes hold by different plans, with the files in the source. It keeps no state: a Question contains what the node
// knows, with the previous Listing, and Find answers it with the next Listing. The node then passes that to the state
// machine of package version, and lists again when Listing.Next is due. Health records what cannot be listed.
package discovery

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"sequins/pin"
	"sequins/source"
	"sequins/store"
	"sequins/version"
)

const (
	// maxPromising limits how many complete or settling versions are inspected. Incomplete and failed
	// ones do not count, so that they cannot hide good ones.
	maxPromising = 100
	// maxCandidates is how many complete versions that have not failed and are not held are listed.
	maxCandidates = 3
	// maxFailedLooks is how many inspections of a version may fail because this node has no
	// permission to read another version, which may have a marker.
	maxFailedLooks = 5
	// maxLook limits how long the inspection of one version may take.
	maxLook = 20 * time.Second
	// minPause and maxPause limit the pause after a failed inspection, which doubles with each.
	minPause = time.Second
	maxPause = 5 * time.Minute
)

// A Question is the state of a node that a listing needs. Versions are named by their ids on the node: see
// version.Revise.
type Question struct {
	Current string            // older versions are not listed
	Served  string            // the version served before a restart, which was complete then
	IDs     map[string]string // by the name of a version, the id of its newest revision on the node
	Known   map[string]bool   // complete versions, which are not inspected again
	Failed  map[string]bool   // versions that failed to load
	Loading map[string]bool   // known versions that are being loaded
	Held    map[string]bool   // versions that a gate holds: they are no alternative to others
	Settled map[string]bool   // versions accepted before: they need not settle again
	// Plans are the node's plans of versions to compare with the source, of which Apart are held by other nodes by another
	// plan.
	Plans   map[string]store.Manifest
	Apart   map[string]bool
	Pin     pin.File // the last one that could be read
	Changed string   // a version whose files have changed before: it is compared, but need not be shared
	Last    Listing  // the previous one
	Again   bool     // only repeats an unfinished listing, not requested by a refresh
	Compare bool     // only compares Plans with the source, and keeps the rest of Last
}

// A Look is the first of consecutive inspections of a version that found the same
// files, and the number of failed inspections since the last successful one.
type Look struct {
	fingerprint [sha256.Size]byte
	at          time.Time // when the inspection ended
	since       time.Time // of the first inspection that did not find the version complete
	failures    int
	failure     string    // the last error
	retry       time.Time // when to retry after that
}

// An Input is equal for inspections of a version that found the same files.
type Input [sha256.Size]byte

// A Listing is the result of listing the versions in the source. It is immutable.
type Listing struct {
	Names      []string                  // of all versions, ascending, complete or not
	Remarks    []string                  // about what else is in the directory of the db: see source.Names
	Versions   []string                  // complete versions, ascending; no more than needed
	Unknown    []string                  // versions whose inspection failed
	Changed    []string                  // versions whose files differ from this node's plan, which is in Compared
	Compared   map[string]store.Manifest // Question.Plans
	Same       string                    // Question.Changed, if its files are those of its plan
	Differs    map[string]string         // by id: how the files of versions in Plans differ from them, for people
	Wrong      map[string]string         // what is wrong with versions that other nodes hold by another plan
	Unfinished string                    // why the newest incomplete version is incomplete; "" if there is none
	LeftOut    map[string]string         // by version: a message about ignored files
	Looks      map[string]Look           // of versions that will be inspected again
	Inputs     map[string]Input          // by the names of the versions that were inspected
	Next       time.Time                 // when to list again; zero: at the next refresh
	Pin        pin.File                  // of the database; Question.Pin if it cannot be read
	Marked     bool                      // a version has _SUCCESS, and with Finder.Auto all of them need it
}

// Late returns the versions older than id, by name, that a previous listing did not have: they will not be served.
func (l Listing) Late(before Listing, id string) (late []string) {
	if before.Names == nil {
		return nil
	}
	for _, name := range l.Names {
		if name >= version.Name(id) {
			break
		}
		if _, found := slices.BinarySearch(before.Names, name); !found {
			late = append(late, name)
		}
	}
	return late
}

// After returns the versions newer than id.
func (l Listing) After(id string) []string {
	i, found := slices.BinarySearch(l.Versions, id)
	if found {
		i++
	}
	return l.Versions[i:]
}

// A Finder finds the versions of one database.
type Finder struct {
	Source source.Source
	DB     string
	Log    *slog.Logger
	// Settle is how long a version has to stay the same unless its listing alone shows that it is complete.
	Settle time.Duration
	// Require makes _SUCCESS required. Auto makes it required if one version has it.
	Require, Auto bool
	// Begun reports whether a load of a version has begun with the same files, maybe before a restart: the
	// version was complete then, and has not changed.
	Begun func(id string, files []source.File) bool
	// Shared reports whether another node holds any partition of a version by this node's plan.
	Shared func(id string, partitions int) bool
}

// Keys of messages in Listing.LeftOut that are not of a version: no version has these names.
const (
	emptied    = "."  // the served version is gone, or all are
	uncompared = ".." // what is served cannot be compared with the source
)

// Find returns the newest complete versions: a few that have not failed and are not held, so that there is an alternative
// if the newest cannot be served, all that are newer than those, and those that are being loaded. An
// error means that the source cannot be listed.
func (f Finder) Find(ctx context.Context, q Question) (Listing, error) {
	if q.Compare {
		return f.compareOnly(ctx, q), nil
	}
	in, err := source.ListNames(ctx, f.Source, f.DB)
	if err != nil {
		return Listing{}, err
	}
	names := in.Names
	o := observer{Finder: f, Question: q, names: names, now: time.Now(), limit: maxLook,
		found: Listing{Names: names, Remarks: in.Remarks(f.DB), Looks: map[string]Look{}, Inputs: map[string]Input{}, LeftOut: map[string]string{}, Wrong: map[string]string{}, Differs: map[string]string{}, Compared: q.Plans}}
	if deadline, ok := ctx.Deadline(); ok {
		o.limit = min(o.limit, time.Until(deadline)/3)
	}
	for name, s := range q.Last.LeftOut {
		id := q.id(name)
		if _, compared := q.Plans[q.Current]; name == uncompared && !compared || name != pin.FileName && name != emptied && (q.Known[id] || id == q.Current) {
			o.found.LeftOut[name] = s
		}
	}
	o.readPin(ctx)
	o.knowMarker(ctx)
	allowed := Allowed(o.found.Pin, o.now)
	for _, name := range slices.Backward(names) {
		if q.id(name) <= q.Current && allowed.Allows(q.Current) {
			break
		}
		if !allowed.Allows(name) || o.good >= maxCandidates && q.id(name) != q.Served && !q.Loading[q.id(name)] {
			continue
		}
		if err := o.observe(ctx, name); err != nil {
			return Listing{Marked: o.found.Marked}, err
		}
	}
	slices.Reverse(o.found.Versions)
	o.noteGone()
	o.compare(ctx, allowed)
	return o.found, nil
}

// noteGone adds a message if the version that is served is not in the source, and none that could take its place.
func (o *observer) noteGone() {
	switch served := version.Name(o.Current); {
	case served == "" || slices.Contains(o.names, served) || len(o.found.After(o.Current)) > 0:
	case len(o.names) == 0:
		o.found.LeftOut[emptied] = fmt.Sprintf("%s has no version in the source any more; version %s is served on", o.DB, served)
	default:
		o.found.LeftOut[emptied] = fmt.Sprintf("version %s of %s is not in the source any more; it is served from its blocks, and not by nodes that have none", served, o.DB)
	}
}

// compareOnly answers a question with Compare.
func (f Finder) compareOnly(ctx context.Context, q Question) Listing {
	o := observer{Finder: f, Question: q, names: q.Last.Names, now: time.Now(), limit: maxLook, found: q.Last}
	o.found.Looks, o.found.LeftOut = maps.Clone(q.Last.Looks), maps.Clone(q.Last.LeftOut)
	o.found.Compared, o.found.Changed, o.found.Same, o.found.Next = q.Plans, nil, "", time.Time{}
	o.found.Wrong, o.found.Differs = map[string]string{}, map[string]string{}
	delete(o.found.LeftOut, uncompared)
	o.compare(ctx, Allowed(q.Pin, o.now))
	return o.found
}

// id returns the id of the newest revision of a version.
func (q *Question) id(name string) string {
	if id, found := q.IDs[name]; found {
		return id
	}
	return name
}
