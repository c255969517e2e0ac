// Package discovery finds the versions of a database that a node can load: it lists the source, inspects the newest
// versions for markers and completeness, waits until versions stay the same whose listing does not show that they are complete,
// and compares what is served, and what other nodes hold other contents of, with the files in the source. It keeps no state: a Question contains what the node
// knows, with the previous Listing, and Find answers it with the next Listing. The node then takes that into the
// facts that package version decides from, and lists again when Listing.Next is due. Health records what cannot be listed.
package discovery

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/source"
	"sequins/store"
	"sequins/version/pin"
)

const (
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

// A Question is the state of a node that a listing needs.
type Question struct {
	Served content.Input            // what is served or, unless it is Active, was before a restart: it was complete then
	Active bool                     // versions with lesser names than Served are not listed
	Known  map[string]content.Input // by name: complete versions, which are not inspected again
	States map[content.Input]State  // of the inputs of which the node knows something
	// Manifests are those of contents that are served, here or by other nodes, by name. A listing that has a part of the files of one of them
	// is of its input.
	Manifests map[string][]store.Manifest
	// Compare are the contents on this node to be compared with the source. Of these, Apart are those of which other nodes hold other contents,
	// and none this one.
	Compare map[content.Input]store.Manifest
	Apart   map[content.Input]bool
	Mixed   bool     // changes of files are reported only, see version.Cluster
	Pin     pin.File // the last one that could be read
	Last    Listing  // the previous one
	Again   bool     // only repeats an unfinished listing, not requested by a refresh
	Only    bool     // only compares, and keeps the rest of Last
}

// A State is what a node knows of an input.
type State struct {
	Failed  bool // it has failed to load
	Loading bool // it is in Known and being loaded
	Held    bool // a gate holds it, or it is stalled: it is no alternative to others
	Settled bool // it was accepted before, and need not settle again
}

// A Look is the first of consecutive inspections of a version that found the same
// files, and the number of failed inspections since the last successful one.
type Look struct {
	fingerprint [sha256.Size]byte
	at          time.Time // when the inspection ended
	since       time.Time // of the first inspection that did not find the version complete
	failures    int
}

// A Listing is the result of listing the versions in the source. It is immutable.
type Listing struct {
	Names      []string                 // of all versions, ascending, complete or not
	Remarks    []string                 // about what else is in the directory of the db: see source.Names
	Inputs     []content.Input          // of complete versions, ascending, one of each name; no more than needed
	Unknown    []string                 // names of versions whose inspection failed
	Differs    map[content.Input]string // how the files of contents in Compare differ from those in the source, for people
	Wrong      map[content.Input]Fault  // what is wrong with contents in Compare
	Unfinished string                   // why the newest incomplete version is incomplete; "" if there is none
	LeftOut    map[string]string        // by name: a message about ignored files
	Looks      map[string]Look          // by name: versions that will be inspected again
	Next       time.Time                // when to list again; zero: at the next refresh
	Pin        pin.File                 // of the database; Question.Pin if it cannot be read
	Marked     bool                     // a version has _SUCCESS, and with Finder.Auto all of them need it
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
	// Input returns the input of a version with a listing, by the configuration.
	Input func(name string, l source.Listing) content.Input
	// Begun reports whether a load of an input has begun, maybe before a restart: the version was complete then, and has not changed.
	Begun func(content.Input) bool
}

// Keys of messages in Listing.LeftOut that are not of a version: no version has these names.
const (
	emptied    = "."  // the served version is gone, or all are
	uncompared = ".." // what is served cannot be compared with the source
)

// Find returns the newest complete versions: a few that have not failed and are not held, so that there is an alternative if the newest cannot be
// served, all that are newer than those, and those that are being loaded. An error means that the source cannot be listed.
func (f Finder) Find(ctx context.Context, q Question) (Listing, error) {
	if q.Only {
		o := observer{Finder: f, Question: q, names: q.Last.Names, now: time.Now(), limit: maxLook, found: q.Last}
		o.found.Looks, o.found.LeftOut = maps.Clone(q.Last.Looks), maps.Clone(q.Last.LeftOut)
		o.found.Inputs, o.found.Next = slices.Clone(q.Last.Inputs), time.Time{}
		delete(o.found.LeftOut, uncompared)
		o.compare(ctx, q.Pin.At(o.now))
		return o.found, nil
	}
	in, err := source.ListNames(ctx, f.Source, f.DB)
	if err != nil {
		return Listing{}, err
	}
	names := in.Names
	o := observer{Finder: f, Question: q, names: names, now: time.Now(), limit: maxLook,
		found: Listing{Names: names, Remarks: in.Remarks(f.DB), Looks: map[string]Look{}, LeftOut: map[string]string{}}}
	if deadline, ok := ctx.Deadline(); ok {
		o.limit = min(o.limit, time.Until(deadline)/3)
	}
	for name, s := range q.Last.LeftOut {
		_, compared := q.Compare[q.current()]
		if name == uncompared && !compared || name != pin.FileName && name != emptied && (q.isKnown(name) || name == q.current().Name) {
			o.found.LeftOut[name] = s
		}
	}
	o.readPin(ctx)
	o.knowMarker(ctx)
	allowed := o.found.Pin.At(o.now)
	for _, name := range slices.Backward(names) {
		if q.Active && name <= q.Served.Name && allowed.Allows(q.Served.Name) {
			break
		}
		if !allowed.Allows(name) || o.good >= maxCandidates && name != q.Served.Name && !q.States[q.Known[name]].Loading {
			continue
		}
		if err := o.observe(ctx, name); err != nil {
			return Listing{Marked: o.found.Marked}, err
		}
	}
	o.noteGone()
	o.compare(ctx, allowed)
	return o.found, nil
}

// current returns the version that is served; zero if there is none.
func (q *Question) current() content.Input {
	if !q.Active {
		return content.Input{}
	}
	return q.Served
}

// isKnown reports whether a version is complete, and not inspected again.
func (q *Question) isKnown(name string) bool {
	in, known := q.Known[name]
	return known && !q.States[in].Failed
}

// noteGone adds a message if the version that is served is not in the source, and none that could take its place.
func (o *observer) noteGone() {
	switch served := o.Served.Name; {
	case !o.Active || slices.Contains(o.names, served) || slices.ContainsFunc(o.found.Inputs, func(in content.Input) bool { return in.Name >= served && in != o.Served }):
	case len(o.names) == 0:
		o.found.LeftOut[emptied] = fmt.Sprintf("%s has no version in the source any more; version %s is served on", o.DB, served)
	default:
		o.found.LeftOut[emptied] = fmt.Sprintf("version %s of %s is not in the source any more; it is served from its blocks, and not by nodes that have none", served, o.DB)
	}
}

// Databases lists the databases of a source, which has a name for errors. A source without any, while some are served, is
// an error: most likely it is not mounted.
func Databases(ctx context.Context, src source.Source, name string, served []string) (source.Names, error) {
	found, err := source.ListNames(ctx, src, "")
	if err == nil && len(found.Names) == 0 && len(served) > 0 {
		err = fmt.Errorf("%s lists none of the %d databases that are served here (%s, …), and no other: is it mounted?", name, len(served), served[0])
	}
	return found, err
}
