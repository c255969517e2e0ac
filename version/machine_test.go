package version

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is an event, the expected actions, and the versions afterwards: "1:ACTIVE
// 2:BUILDING", the current one with a star.
type step struct {
	event   event
	actions string
	state   string
}

// open is the action of a node that opens an input before it decides.
const open = Delete + 1

var opNames = [...]string{"load", "activate", "cancel", "retire", "revive", "close", "delete", "open"}

// String returns the action, as in "load 2026-01-31".
func (a Action) String() string {
	if a.Back {
		return opNames[a.Op] + " " + a.Input.Name + " back"
	}
	return opNames[a.Op] + " " + a.Input.Name
}

func describe(actions []Action) string {
	var all []string
	for _, a := range actions {
		all = append(all, strings.Replace(a.String(), a.Input.Name, spell(a.Input), 1))
	}
	return strings.Join(all, ", ")
}

func (s state) String() string {
	all := make([]string, len(s.Entries))
	for i, v := range s.Entries {
		all[i] = spell(v.Input) + ":" + string(s.Status(v))
		if v.Input == s.Current {
			all[i] += "*"
		}
	}
	return strings.Join(all, " ")
}

func here(v string) Seen      { return Seen{in(v), true, true, true, true, false, false} }    // complete here; enough on a single node
func partly(v string) Seen    { return Seen{in(v), false, false, true, false, false, false} } // partly here
func nothing(v string) Seen   { return Seen{in(v), false, false, false, false, false, false} }
func elsewhere(v string) Seen { return Seen{in(v), false, true, true, true, false, false} }  // complete on other nodes
func waiting(v string) Seen   { return Seen{in(v), true, false, true, false, false, false} } // complete here, but not on other nodes
func held(v string) Seen      { return Seen{in(v), true, false, true, false, true, false} }  // complete here, and a gate holds it
func ok(v string) LoadEnded   { return LoadEnded{Input: in(v)} }
func bad(v string) LoadEnded  { return LoadEnded{Input: in(v), Err: "bad", Faulty: true} }
func away(v string) LoadEnded { return LoadEnded{Input: in(v), Err: "the source is unavailable"} }
func list(v ...string) Listed { return Listed{Inputs: inputs(v...)} }
func source(v ...string) start {
	return start{then: list(v...)}
}

// restart is a start of a node that served a version before.
func restart(served string, local, listed []string) start {
	return start{Start{Local: inputs(local...), Served: in(served)}, list(listed...)}
}

// withoutSource is a start of a node that cannot read the source.
func withoutSource(served string, local ...string) start {
	return start{Start{Local: inputs(local...), Served: in(served)}, Unlisted{}}
}

// A start is two events at once: Start, and how the first look at the source ends.
type start struct {
	Start
	then event
}

// next is Next, also for a start.
func next(s state, e event) (state, []Action) {
	both, ok := e.(start)
	if !ok {
		return Next(s, e)
	}
	s, first := Next(s, both.Start)
	s, second := Next(s, both.then)
	return s, append(first, second...)
}

var scripts = map[string][]step{
	"a first version is loaded and served": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{partly("1"), "", "1:PREPARED"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
	},
	"a new one replaces it, and the old one is removed when it is idle and released": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2, retire 1", "1:REMOVING 2:ACTIVE*"},
		{ok("2"), "", "1:REMOVING 2:ACTIVE*"},
		{list("1", "2"), "", "1:REMOVING 2:ACTIVE*"},
		{IsIdle{in("1")}, "close 1", "1:REMOVING 2:ACTIVE*"},
		{IsClosed{in("1")}, "delete 1", "1:REMOVING 2:ACTIVE*"},
		{Deleted{in("1"), ""}, "", "2:ACTIVE*"},
		{list("1", "2"), "", "2:ACTIVE*"},
	},
	"a broken name that sorts above every good one does not block upgrades": {
		{source("1", "zzz"), "open zzz, open 1", "1:AVAILABLE zzz:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* zzz:AVAILABLE"},
		{NotFound{in("zzz")}, "load zzz", "1:ACTIVE* zzz:BUILDING"},
		{bad("zzz"), "", "1:ACTIVE* zzz:ERROR"},
		{list("1", "2", "zzz"), "load 2", "1:ACTIVE* 2:BUILDING zzz:ERROR"},
		{Retry{in("zzz")}, "load zzz", "1:ACTIVE* 2:BUILDING zzz:ERROR"},
		{bad("zzz"), "", "1:ACTIVE* 2:BUILDING zzz:ERROR"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED zzz:ERROR"},
		{here("2"), "activate 2, retire 1", "1:REMOVING 2:ACTIVE* zzz:ERROR"},
	},
	"what is being served stays although the source lost it": {
		{withoutSource("", "5"), "open 5", "5:AVAILABLE"},
		{here("5"), "activate 5", "5:ACTIVE*"},
		{list("3", "4"), "", "5:ACTIVE*"},
		{list(), "", "5:ACTIVE*"},
		{list("3", "6"), "load 6", "5:ACTIVE* 6:BUILDING"},
	},
	"superseded while loading: cancelled at once, and removed": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{list("1", "2", "3"), "load 3, cancel 2", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{bad("2"), "delete 2", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{Deleted{in("2"), ""}, "", "1:ACTIVE* 3:BUILDING"},
	},
	"gone from the source after it was prepared: it may have readers": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{list("2"), "load 2, retire 1, cancel 1", "1:REMOVING 2:BUILDING"},
		{here("1"), "", "1:REMOVING 2:BUILDING"}, // too late
		{IsIdle{in("1")}, "close 1", "1:REMOVING 2:BUILDING"},
		{IsClosed{in("1")}, "", "1:REMOVING 2:BUILDING"},
		{ok("1"), "delete 1", "1:REMOVING 2:BUILDING"},
	},
	"in place of a version that has gone from the source, a broken one: it is back, and wanted again": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{partly("1"), "", "1:PREPARED"},
		{list("2"), "load 2, retire 1, cancel 1", "1:REMOVING 2:BUILDING"},
		{bad("2"), "", "1:REMOVING 2:ERROR"},
		{list("1", "2"), "revive 1", "1:PREPARED 2:ERROR"},
		{LoadEnded{Input: in("1"), Err: "cancelled"}, "load 1", "1:PREPARED 2:ERROR"},
		{Planned{in("1"), false}, "", "1:PREPARED 2:ERROR"},
		{partly("1"), "", "1:PREPARED 2:ERROR"},
		{here("1"), "activate 1", "1:ACTIVE* 2:ERROR"},
		{ok("1"), "", "1:ACTIVE* 2:ERROR"},
	},
	"superseded by a broken version before it could be read": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{list("1", "2"), "load 2, cancel 1", "1:REMOVING 2:BUILDING"},
		{bad("2"), "", "1:REMOVING 2:ERROR"},
		{LoadEnded{Input: in("1"), Err: "cancelled"}, "load 1", "1:BUILDING 2:ERROR"},
	},
	"gone from the source and back, and readers hold it open": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{list("1", "3"), "load 3, retire 2, cancel 2", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{IsIdle{in("2")}, "close 2", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{ok("2"), "", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{bad("3"), "", "1:ACTIVE* 2:REMOVING 3:ERROR"},
		{list("1", "2", "3"), "", "1:ACTIVE* 2:REMOVING 3:ERROR"},
		{IsClosed{in("2")}, "load 2", "1:ACTIVE* 2:BUILDING 3:ERROR"},
	},
	"superseded by a broken version, and its files could not be deleted": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{list("1", "2"), "load 2, cancel 1", "1:REMOVING 2:BUILDING"},
		{bad("1"), "delete 1", "1:REMOVING 2:BUILDING"},
		{Deleted{in("1"), "busy"}, "", "1:REMOVING 2:BUILDING"},
		{bad("2"), "load 1", "1:BUILDING 2:ERROR"},
	},
	"a version that failed, left the source and is back": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{bad("2"), "", "1:ACTIVE* 2:ERROR"},
		{list("1"), "retire 2", "1:ACTIVE* 2:REMOVING"},
		{list("1", "2"), "revive 2, load 2", "1:ACTIVE* 2:PREPARED"},
		{Planned{in("2"), true}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2, retire 1", "1:REMOVING 2:ACTIVE*"},
	},
	"a load that was overtaken by a change of what has to be held is not an attempt": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{LoadEnded{Input: in("1"), Outdated: true}, "load 1", "1:PREPARED"},
		{LoadEnded{Input: in("1"), Outdated: true}, "load 1", "1:PREPARED"},
		{ok("1"), "", "1:ERROR"},
	},
	"the version that loads has gone from the source": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{list("1"), "cancel 2", "1:ACTIVE* 2:REMOVING"},
		{bad("2"), "delete 2", "1:ACTIVE* 2:REMOVING"},
		{list("1", "2"), "", "1:ACTIVE* 2:REMOVING"},
		{Deleted{in("2"), ""}, "load 2", "1:ACTIVE* 2:BUILDING"},
	},
	"an error of the newest leaves the current one, and is not retried by a refresh": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2", "3"), "load 3", "1:ACTIVE* 3:BUILDING"},
		{bad("3"), "load 2", "1:ACTIVE* 2:BUILDING 3:ERROR"},
		{bad("2"), "", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{list("1", "3"), "delete 2", "1:ACTIVE* 2:REMOVING 3:ERROR"},
		{Deleted{in("2"), ""}, "", "1:ACTIVE* 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:ACTIVE* 3:ERROR"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 3:ERROR"},
		{bad("3"), "", "1:ACTIVE* 3:ERROR"},
		{list("1", "3"), "", "1:ACTIVE* 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:ACTIVE* 3:ERROR"},
		{here("3"), "activate 3, retire 1", "1:REMOVING 3:ACTIVE*"},
	},
	"a version that failed and was repaired is not what it was": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{partly("1"), "", "1:PREPARED"},
		{bad("1"), "", "1:ERROR"},
		{Retry{in("1")}, "load 1", "1:ERROR"},
		{Planned{in("1"), true}, "", "1:ERROR"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"},
		{partly("1"), "load 1", "1:ACTIVE*"},
		{Planned{in("1"), true}, "", "1:ACTIVE*"}, // the active version cannot be replaced
		{bad("1"), "", "1:ACTIVE*"},
	},
	"an error with nothing to serve: the next older": {
		{source("2", "3", "4"), "open 4, open 3, open 2", "2:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "load 4", "2:AVAILABLE 3:AVAILABLE 4:BUILDING"},
		{NotFound{in("3")}, "", "2:AVAILABLE 4:BUILDING"},
		{NotFound{in("2")}, "", "4:BUILDING"},
		{bad("4"), "load 3", "3:BUILDING 4:ERROR"},
		{bad("3"), "load 2", "2:BUILDING 3:ERROR 4:ERROR"},
		{Retry{in("4")}, "load 4", "2:BUILDING 3:ERROR 4:ERROR"},
		{bad("4"), "", "2:BUILDING 3:ERROR 4:ERROR"},
		{Planned{in("2"), false}, "", "2:PREPARED 3:ERROR 4:ERROR"},
		{here("2"), "activate 2", "2:ACTIVE* 3:ERROR 4:ERROR"},
		{ok("2"), "", "2:ACTIVE* 3:ERROR 4:ERROR"},
		{list("2", "3", "4"), "", "2:ACTIVE* 3:ERROR 4:ERROR"},
		{Retry{in("4")}, "load 4", "2:ACTIVE* 3:ERROR 4:ERROR"},
	},
	"the retried newest gets ahead of the older one that loads meanwhile": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{NotFound{in("1")}, "", "2:AVAILABLE"},
		{NotFound{in("2")}, "load 2", "2:BUILDING"},
		{bad("2"), "load 1", "1:BUILDING 2:ERROR"},
		{Retry{in("2")}, "load 2", "1:BUILDING 2:ERROR"},
		{Planned{in("2"), false}, "", "1:BUILDING 2:ERROR"},
		{here("2"), "activate 2, cancel 1", "1:REMOVING 2:ACTIVE*"},
	},
	"a fresh version supersedes an older one that loads because another failed": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{NotFound{in("1")}, "", "2:AVAILABLE"},
		{NotFound{in("2")}, "load 2", "2:BUILDING"},
		{bad("2"), "load 1", "1:BUILDING 2:ERROR"},
		{list("1", "2", "3"), "load 3, cancel 1", "1:REMOVING 2:ERROR 3:BUILDING"},
	},
	"a version that has failed is not loaded again because a newer one fails": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{bad("2"), "", "1:ACTIVE* 2:ERROR"},
		{list("1", "2", "3"), "load 3", "1:ACTIVE* 2:ERROR 3:BUILDING"},
		{bad("3"), "", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{Retry{in("2")}, "load 2", "1:ACTIVE* 2:ERROR 3:ERROR"},
	},
	"a version that has failed with nothing of it here is not loaded again because newer ones fail; one with a part of it is": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{nothing("2"), "", "1:ACTIVE* 2:PREPARED"},
		{bad("2"), "", "1:ACTIVE* 2:ERROR"},
		{list("1", "2", "3"), "load 3", "1:ACTIVE* 2:ERROR 3:BUILDING"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 2:ERROR 3:PREPARED"},
		{partly("3"), "", "1:ACTIVE* 2:ERROR 3:PREPARED"},
		{bad("3"), "", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{list("1", "2", "3", "4"), "load 4, retire 3", "1:ACTIVE* 2:ERROR 3:REMOVING 4:BUILDING"},
		{IsIdle{in("3")}, "close 3", "1:ACTIVE* 2:ERROR 3:REMOVING 4:BUILDING"},
		{IsClosed{in("3")}, "delete 3", "1:ACTIVE* 2:ERROR 3:REMOVING 4:BUILDING"},
		{Deleted{in("3"), ""}, "", "1:ACTIVE* 2:ERROR 4:BUILDING"},
		{bad("4"), "load 3", "1:ACTIVE* 2:ERROR 3:BUILDING 4:ERROR"},
	},
	"a database that has left the source is removed at once": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{Left{}, "close 1, close 2, cancel 2", "1:REMOVING 2:REMOVING"},
		{Left{}, "", "1:REMOVING 2:REMOVING"},
		{list("1", "2", "3"), "", "1:REMOVING 2:REMOVING"},
		{IsClosed{in("1")}, "delete 1", "1:REMOVING 2:REMOVING"},
		{IsClosed{in("2")}, "", "1:REMOVING 2:REMOVING"},
		{Deleted{in("1"), "busy"}, "", "1:REMOVING 2:REMOVING"},
		{bad("2"), "delete 2", "1:REMOVING 2:REMOVING"},
		{Deleted{in("2"), ""}, "", "1:REMOVING"},
		{Left{}, "delete 1", "1:REMOVING"},
		{Deleted{in("1"), ""}, "", ""},
	},
	"gone while an old version lingers and a new one is being opened": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 2:AVAILABLE"},
		{Left{}, "close 1", "1:REMOVING 2:AVAILABLE"},
		{here("2"), "close 2", "1:REMOVING 2:REMOVING"},
	},
	"gone while an old version lingers": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2, retire 1", "1:REMOVING 2:ACTIVE*"},
		{Left{}, "close 1, close 2, cancel 2", "1:REMOVING 2:REMOVING"},
		{IsIdle{in("1")}, "", "1:REMOVING 2:REMOVING"},
	},
	"a block that is corrupt again is loaded again after a retry": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"},
		{partly("1"), "load 1", "1:ACTIVE*"},
		{here("1"), "", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{list("1"), "", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"},
		{partly("1"), "", "1:ACTIVE*"},
		{Retry{in("1")}, "load 1", "1:ACTIVE*"},
		{here("1"), "", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"},
		{partly("1"), "load 1", "1:ACTIVE*"},
	},
	"a corrupt block is set aside and loaded again while the version stays": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"},
		{partly("1"), "load 1", "1:ACTIVE*"},
		{Planned{in("1"), false}, "", "1:ACTIVE*"},
		{here("1"), "", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"}, // again: not before the next retry
		{partly("1"), "", "1:ACTIVE*"},
		{list("1"), "", "1:ACTIVE*"},
		{Retry{in("1")}, "load 1", "1:ACTIVE*"},
		{bad("1"), "", "1:ACTIVE*"},
		{Retry{in("1")}, "load 1", "1:ACTIVE*"},
		{here("1"), "", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
	},
	"a load that ends without an error and without an end is repeated once": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{Corrupted{in("1"), 4}, "", "1:ACTIVE*"},
		{partly("1"), "load 1", "1:ACTIVE*"},
		{Corrupted{in("1"), 5}, "", "1:ACTIVE*"},
		{partly("1"), "", "1:ACTIVE*"},
		{ok("1"), "load 1", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{list("1"), "", "1:ACTIVE*"},
		{Retry{in("1")}, "load 1", "1:ACTIVE*"},
	},
	"a retry is for one version": {
		{source("1", "2", "3"), "open 3, open 2, open 1", "1:AVAILABLE 2:AVAILABLE 3:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 2:AVAILABLE 3:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 2:AVAILABLE 3:BUILDING"},
		{Retry{in("3")}, "", "1:ACTIVE* 2:AVAILABLE 3:BUILDING"}, // already loading
		{bad("3"), "", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{Retry{in("2")}, "", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{Retry{in("9")}, "", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{bad("3"), "", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 2:AVAILABLE 3:ERROR"},
		{here("3"), "activate 3, retire 1", "1:REMOVING 2:AVAILABLE 3:ACTIVE*"},
	},
	"in a cluster the switch does not wait for this node's own load": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{NotFound{in("2")}, "load 2", "1:AVAILABLE 2:BUILDING"},
		{elsewhere("1"), "activate 1, load 1", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{partly("2"), "", "1:ACTIVE* 2:PREPARED"},
		{elsewhere("2"), "activate 2, retire 1, cancel 1", "1:REMOVING 2:ACTIVE*"},
		{here("2"), "", "1:REMOVING 2:ACTIVE*"},
		{ok("2"), "", "1:REMOVING 2:ACTIVE*"},
	},
	"in a cluster a node whose own load failed switches with the others": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{NotFound{in("2")}, "load 2", "1:AVAILABLE 2:BUILDING"},
		{here("1"), "activate 1", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{bad("2"), "", "1:ACTIVE* 2:ERROR"},
		{elsewhere("2"), "activate 2, retire 1", "1:REMOVING 2:ACTIVE*"},
		{Retry{in("2")}, "load 2", "1:REMOVING 2:ACTIVE*"},
	},
	"in a cluster what is done here waits for the others, even if a newer one is found": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{waiting("1"), "", "1:PREPARED"},
		{ok("1"), "", "1:PREPARED"},
		{list("1", "2"), "load 2", "1:PREPARED 2:BUILDING"},
		{here("1"), "activate 1", "1:ACTIVE* 2:BUILDING"},
	},
	"a version that waits for others and whose files have changed gives way to what they are now": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{waiting("1"), "", "1:PREPARED"},
		{ok("1"), "", "1:PREPARED"},
		{list("1~f", "10"), "load 10, retire 1", "1:REMOVING 10:BUILDING"},
		{list("1~f"), "load 1~f, cancel 10", "1:REMOVING 1~f:BUILDING 10:REMOVING"},
	},
	"an active version is served until its other input is ready": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING"},
		{Planned{in("1"), false}, "", "1:PREPARED"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{ok("1"), "", "1:ACTIVE*"},
		{list("1~f"), "load 1~f", "1:ACTIVE* 1~f:BUILDING"},
		{Planned{in("1~f"), false}, "", "1:ACTIVE* 1~f:PREPARED"},
		{waiting("1~f"), "", "1:ACTIVE* 1~f:PREPARED"},
		{here("1~f"), "activate 1~f, retire 1", "1:REMOVING 1~f:ACTIVE*"},
		{list("1~f", "10"), "load 10", "1:REMOVING 1~f:ACTIVE* 10:BUILDING"},
	},
	"what cannot be looked at is neither loaded nor removed": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{NotFound{in("2")}, "load 2", "1:AVAILABLE 2:BUILDING"},
		{NotFound{in("1")}, "", "2:BUILDING"},
		{Planned{in("2"), false}, "", "2:PREPARED"},
		{partly("2"), "", "2:PREPARED"},
		{away("2"), "load 1", "1:BUILDING 2:ERROR"},
		{Listed{Inputs: inputs("1"), Unknown: []string{"2"}}, "", "1:BUILDING 2:ERROR"},
		{list("1", "2"), "", "1:BUILDING 2:ERROR"},
	},
	"events of unknown versions change nothing": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("7"), "", "1:AVAILABLE"},
		{ok("7"), "", "1:AVAILABLE"},
		{ok("1"), "", "1:AVAILABLE"},
		{Corrupted{in("7"), 1}, "", "1:AVAILABLE"},
		{Corrupted{in("1"), 1}, "", "1:AVAILABLE"},
		{IsIdle{in("1")}, "", "1:AVAILABLE"},
		{IsClosed{in("1")}, "", "1:AVAILABLE"},
		{Deleted{in("1"), ""}, "", "1:AVAILABLE"},
		{Planned{in("1"), false}, "", "1:AVAILABLE"},
	},
}

func TestDecide(t *testing.T) {
	maps.Copy(scripts, startScripts)
	maps.Copy(scripts, servedScripts)
	maps.Copy(scripts, pinScripts)
	maps.Copy(scripts, heldScripts)
	maps.Copy(scripts, takenScripts)
	maps.Copy(scripts, lostScripts)
	maps.Copy(scripts, rollbackScripts())
	for _, pair := range [][2]string{{"2", "2~f"}, {"2", "2~0"}} { // the hash of the other input is greater, or less
		for name, script := range inputScripts(pair[0], pair[1]) {
			scripts[name+", "+pair[0]+" and "+pair[1]] = script
		}
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			var s state
			for i, step := range script {
				var actions []Action
				s, actions = next(s, step.event)
				want := step.actions + "\n" + step.state
				if diff := cmp.Diff(want, describe(actions)+"\n"+s.String()); diff != "" {
					t.Fatalf("step %d, %#v:\n%s", i, step.event, diff)
				}
			}
			if _, gone := script[len(script)-1].event.(Deleted); gone && (s.Source == Gone) != s.Finished() {
				t.Errorf("Finished() = %v of %v", s.Finished(), s)
			}
		})
	}
}
