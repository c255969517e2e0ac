package version

import "sequins/version/pin"

// inputScripts are further scripts of TestDecide: of a version whose files change from an input x to an input y, and back.
func inputScripts(x, y string) map[string][]step {
	state := func(pairs ...string) string {
		all := ""
		for i := 0; i < len(pairs); i += 2 {
			if i > 0 {
				all += " "
			}
			all += pairs[i] + ":" + pairs[i+1]
		}
		return all
	}
	return map[string][]step{
		"files change, and change back": {
			{source(x), "open " + x, state(x, "AVAILABLE")},
			{here(x), "activate " + x, state(x, "ACTIVE*")},
			{list(y), "load " + y, state(x, "ACTIVE*", y, "BUILDING")},
			{Planned{in(y), false}, "", state(x, "ACTIVE*", y, "PREPARED")},
			{partly(y), "", state(x, "ACTIVE*", y, "PREPARED")},
			{here(y), "activate " + y + ", retire " + x, state(x, "REMOVING", y, "ACTIVE*")},
			{ok(y), "", state(x, "REMOVING", y, "ACTIVE*")},
			{list(x), "revive " + x + ", load " + x, state(x, "PREPARED", y, "ACTIVE*")},
			{here(x), "activate " + x + ", retire " + y, state(x, "ACTIVE*", y, "REMOVING")},
			{ok(x), "", state(x, "ACTIVE*", y, "REMOVING")},
			{IsIdle{in(y)}, "close " + y, state(x, "ACTIVE*", y, "REMOVING")},
			{IsClosed{in(y)}, "delete " + y, state(x, "ACTIVE*", y, "REMOVING")},
			{Deleted{in(y), ""}, "", state(x, "ACTIVE*")},
			{list(y, "9"), "load 9", state(x, "ACTIVE*", "9", "BUILDING")},
		},
		"files change where former versions are kept: of one name, only the served input stays": {
			{start{Start{}, keeping(3, "1")}, "open 1", "1:AVAILABLE"},
			{here("1"), "activate 1", "1:ACTIVE*"},
			{keeping(3, "1", x), "load " + x, state("1", "ACTIVE*", x, "BUILDING")},
			{Planned{in(x), false}, "", state("1", "ACTIVE*", x, "PREPARED")},
			{here(x), "activate " + x, state("1", "PREPARED", x, "ACTIVE*")},
			{ok(x), "", state("1", "PREPARED", x, "ACTIVE*")},
			{keeping(3, "1", y), "load " + y, state("1", "PREPARED", x, "ACTIVE*", y, "BUILDING")},
			{Planned{in(y), false}, "", state("1", "PREPARED", x, "ACTIVE*", y, "PREPARED")},
			{here(y), "activate " + y + ", retire " + x, state("1", "PREPARED", x, "REMOVING", y, "ACTIVE*")},
		},
		"both are on the disk of a newer version that is served, and one of them is kept": {
			{start{Start{Local: inputs(x, y, "3"), Served: in("3"), Former: inputs(x, y), Keep: 3}, keeping(3, "3")},
				"open 3, open " + y + ", open " + x, state(x, "AVAILABLE", y, "AVAILABLE", "3", "AVAILABLE")},
			{here("3"), "activate 3", state(x, "AVAILABLE", y, "AVAILABLE", "3", "ACTIVE*")},
			{here(y), "", state(x, "AVAILABLE", y, "PREPARED", "3", "ACTIVE*")},
			{here(x), "retire " + x, state(x, "REMOVING", y, "PREPARED", "3", "ACTIVE*")},
		},
		"files change back before the others are loaded": {
			{source(x), "open " + x, state(x, "AVAILABLE")},
			{here(x), "activate " + x, state(x, "ACTIVE*")},
			{list(y), "load " + y, state(x, "ACTIVE*", y, "BUILDING")},
			{Planned{in(y), false}, "", state(x, "ACTIVE*", y, "PREPARED")},
			{waiting(y), "", state(x, "ACTIVE*", y, "PREPARED")},
			{list(x), "retire " + y + ", cancel " + y, state(x, "ACTIVE*", y, "REMOVING")},
			{here(y), "", state(x, "ACTIVE*", y, "REMOVING")},
			{ok(y), "", state(x, "ACTIVE*", y, "REMOVING")},
		},
		"files change while they are loaded": {
			{source("1", x), "open " + x + ", open 1", state("1", "AVAILABLE", x, "AVAILABLE")},
			{here("1"), "activate 1", state("1", "ACTIVE*", x, "AVAILABLE")},
			{NotFound{in(x)}, "load " + x, state("1", "ACTIVE*", x, "BUILDING")},
			{list("1", y), "load " + y + ", cancel " + x, state("1", "ACTIVE*", x, "REMOVING", y, "BUILDING")},
			{LoadEnded{Input: in(x), Err: "cancelled"}, "delete " + x, state("1", "ACTIVE*", x, "REMOVING", y, "BUILDING")},
			{Deleted{in(x), ""}, "", state("1", "ACTIVE*", y, "BUILDING")},
		},
		"files change of what was served before a restart, which is served until the others are loaded": {
			{restart(x, []string{x}, []string{y}), "open " + x + ", open " + y, state(x, "AVAILABLE", y, "AVAILABLE")},
			{here(x), "activate " + x, state(x, "ACTIVE*", y, "AVAILABLE")},
			{NotFound{in(y)}, "load " + y, state(x, "ACTIVE*", y, "BUILDING")},
			{Planned{in(y), false}, "", state(x, "ACTIVE*", y, "PREPARED")},
			{here(y), "activate " + y + ", retire " + x, state(x, "REMOVING", y, "ACTIVE*")},
		},
		"files change to faulty ones, and what was served before a restart is served on": {
			{restart(x, []string{"1", x}, []string{"1", y}), "open " + x + ", open 1, open " + y, state("1", "AVAILABLE", x, "AVAILABLE", y, "AVAILABLE")},
			{NotFound{in(y)}, "load " + y, state("1", "AVAILABLE", x, "AVAILABLE", y, "BUILDING")},
			{bad(y), "", state("1", "AVAILABLE", x, "AVAILABLE", y, "ERROR")},
			{here("1"), "", state("1", "PREPARED", x, "AVAILABLE", y, "ERROR")},
			{here(x), "activate " + x + ", retire 1", state("1", "REMOVING", x, "ACTIVE*", y, "ERROR")},
			{list("1", y), "", state("1", "REMOVING", x, "ACTIVE*", y, "ERROR")},
		},
		"files change to faulty ones, and what was served before a restart cannot be read any more": {
			{restart(x, []string{"1", x}, []string{"1", y}), "open " + x + ", open 1, open " + y, state("1", "AVAILABLE", x, "AVAILABLE", y, "AVAILABLE")},
			{here("1"), "", state("1", "PREPARED", x, "AVAILABLE", y, "AVAILABLE")},
			{NotFound{in(x)}, "", state("1", "PREPARED", x, "AVAILABLE", y, "AVAILABLE")},
			{NotFound{in(y)}, "load " + y, state("1", "PREPARED", x, "AVAILABLE", y, "BUILDING")},
			{bad(y), "activate 1, delete " + x, state("1", "ACTIVE*", x, "REMOVING", y, "ERROR")},
		},
		"faulty files change back to what was served before a restart": {
			{restart(x, []string{"1"}, []string{"1", y}), "open " + x + ", open 1, open " + y, state("1", "AVAILABLE", x, "AVAILABLE", y, "AVAILABLE")},
			{here("1"), "", state("1", "PREPARED", x, "AVAILABLE", y, "AVAILABLE")},
			{NotFound{in(y)}, "load " + y, state("1", "PREPARED", x, "AVAILABLE", y, "BUILDING")},
			{bad(y), "", state("1", "PREPARED", x, "AVAILABLE", y, "ERROR")},
			{Listed{Inputs: inputs("1", x), Relook: true}, "delete " + y, state("1", "PREPARED", x, "AVAILABLE", y, "REMOVING")},
			{NotFound{in(x)}, "load " + x, state("1", "PREPARED", x, "BUILDING", y, "REMOVING")},
		},
		"both are on the disk after a restart: the one that was served is, whether or not the source can be read": {
			{Start{Local: inputs(x, y), Served: in(x)}, "open " + x + ", open " + y, state(x, "AVAILABLE", y, "AVAILABLE")},
			{here(y), "", state(x, "AVAILABLE", y, "PREPARED")},
			{Unlisted{}, "", state(x, "AVAILABLE", y, "PREPARED")},
			{here(y), "", state(x, "AVAILABLE", y, "PREPARED")},
			{here(x), "activate " + x, state(x, "ACTIVE*", y, "PREPARED")},
			{here(y), "", state(x, "ACTIVE*", y, "PREPARED")},
			{list(y), "activate " + y + ", retire " + x, state(x, "REMOVING", y, "ACTIVE*")},
		},
		"both are on the disk after a restart, and the source lists the one that was served": {
			{Start{Local: inputs(y, x), Served: in(x)}, "open " + x + ", open " + y, state(y, "AVAILABLE", x, "AVAILABLE")},
			{here(y), "", state(y, "PREPARED", x, "AVAILABLE")},
			{list(x), "retire " + y, state(y, "REMOVING", x, "AVAILABLE")},
			{here(x), "activate " + x, state(y, "REMOVING", x, "ACTIVE*")},
		},
		"a rollback to a version of which the source lists other files than are kept": {
			{Start{Local: inputs(x, "3"), Served: in("3"), Former: inputs(x), Keep: 2}, "open 3, open " + x, state(x, "AVAILABLE", "3", "AVAILABLE")},
			{here("3"), "activate 3", state(x, "AVAILABLE", "3", "ACTIVE*")},
			{here(x), "", state(x, "PREPARED", "3", "ACTIVE*")},
			{Listed{Inputs: inputs(y), Pin: pin.File{Version: "2"}, Keep: 2}, "open " + y, state(x, "PREPARED", y, "AVAILABLE", "3", "ACTIVE*")},
			{NotFound{in(y)}, "load " + y, state(x, "PREPARED", y, "BUILDING", "3", "ACTIVE*")},
			{here(x), "", state(x, "PREPARED", y, "BUILDING", "3", "ACTIVE*")},
			{Planned{in(y), false}, "", state(x, "PREPARED", y, "PREPARED", "3", "ACTIVE*")},
			{here(y), "activate " + y + " back, retire " + x, state(x, "REMOVING", y, "ACTIVE*", "3", "PREPARED")},
		},
		"a rollback to a version of which the source lists damaged files": {
			{Start{Local: inputs(x, "3"), Served: in("3"), Former: inputs(x), Keep: 2}, "open 3, open " + x, state(x, "AVAILABLE", "3", "AVAILABLE")},
			{here("3"), "activate 3", state(x, "AVAILABLE", "3", "ACTIVE*")},
			{here(x), "", state(x, "PREPARED", "3", "ACTIVE*")},
			{Listed{Inputs: inputs(y), Pin: pin.File{Version: "2"}, Keep: 2}, "open " + y, state(x, "PREPARED", y, "AVAILABLE", "3", "ACTIVE*")},
			{NotFound{in(y)}, "load " + y, state(x, "PREPARED", y, "BUILDING", "3", "ACTIVE*")},
			{bad(y), "activate " + x + " back", state(x, "ACTIVE*", y, "ERROR", "3", "PREPARED")},
		},
		"a failure from before a restart is of one input": {
			{Start{Local: inputs("1"), Served: in("1"), Failures: []failed{{in(x), "bad", true}}}, "open 1", "1:AVAILABLE"},
			{here("1"), "activate 1", "1:ACTIVE*"},
			{list("1", y), "open " + y, state("1", "ACTIVE*", y, "AVAILABLE")},
			{NotFound{in(y)}, "load " + y, state("1", "ACTIVE*", y, "BUILDING")},
		},
	}
}

// rollbackScripts are of rollbacks to a version that is kept, the source's view of which differs.
func rollbackScripts() map[string][]step {
	scripts := map[string][]step{}
	for name, listing := range map[string]Listed{
		"the same files":    {Inputs: inputs("1")},
		"no files":          {},
		"files not visible": {Unknown: []string{"1"}},
	} {
		listing.Pin, listing.Keep = pin.File{Version: "1"}, 2
		scripts["a rollback to a kept version of which the source lists "+name] = []step{
			{Start{Local: inputs("1", "2"), Served: in("2"), Former: inputs("1"), Keep: 2}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
			{here("2"), "activate 2", "1:AVAILABLE 2:ACTIVE*"},
			{Seen{Input: in("1"), Complete: true, Readable: true, Whole: true}, "", "1:PREPARED 2:ACTIVE*"},
			{listing, "activate 1 back", "1:ACTIVE* 2:PREPARED"},
		}
	}
	return scripts
}

// takenScripts are of a node that returns while others serve a newer version than it did.
var takenScripts = map[string][]step{
	"what other nodes serve can be read from them, and is served while the source is listed": {
		{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, "open 1, open 3", "1:AVAILABLE 3:AVAILABLE"},
		{elsewhere("3"), "activate 3", "1:AVAILABLE 3:ACTIVE*"},
		{here("1"), "", "1:PREPARED 3:ACTIVE*"},
		{list("1", "3", "4"), "open 4, load 3, retire 1", "1:REMOVING 3:ACTIVE* 4:AVAILABLE"},
		{NotFound{in("4")}, "load 4", "1:REMOVING 3:ACTIVE* 4:BUILDING"},
		{Planned{in("4"), false}, "", "1:REMOVING 3:ACTIVE* 4:PREPARED"},
		{here("4"), "activate 4, retire 3, cancel 3", "1:REMOVING 3:REMOVING 4:ACTIVE*"},
	},
	"what other nodes serve is loaded first, and then what is newer": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "3", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING 4:AVAILABLE"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 3:PREPARED 4:AVAILABLE"},
		{here("3"), "activate 3, retire 1, load 4", "1:REMOVING 3:ACTIVE* 4:BUILDING"},
	},
	"what other nodes serve fails here": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "3", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING 4:AVAILABLE"},
		{away("3"), "load 4", "1:ACTIVE* 3:ERROR 4:BUILDING"},
		{list("1", "3", "4"), "", "1:ACTIVE* 3:ERROR 4:BUILDING"},
	},
	"what other nodes serve is not in the source, and can be had from them": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING 4:AVAILABLE"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 3:PREPARED 4:AVAILABLE"},
		{here("3"), "activate 3, retire 1, load 4", "1:REMOVING 3:ACTIVE* 4:BUILDING"},
	},
	"what other nodes serve is neither in the source nor can be had from them": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1")}, "open 1, open 3", "1:AVAILABLE 3:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING"},
		{bad("3"), "", "1:ACTIVE* 3:ERROR"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:ACTIVE* 2:BUILDING 3:ERROR"},
	},
	"a load that runs is not cancelled for what other nodes serve": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "3", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{waiting("3"), "load 4", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
		{Corrupted{in("3"), 0}, "", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
		{partly("3"), "load 3", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
		{here("3"), "activate 3, retire 1", "1:REMOVING 3:ACTIVE* 4:BUILDING"},
	},
	"other nodes go on while what they served is loaded: a newer version does not wait for it": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING 4:AVAILABLE"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 3:PREPARED 4:AVAILABLE"},
		{waiting("3"), "load 4", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
		{ok("3"), "", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
		{Planned{in("4"), false}, "", "1:ACTIVE* 3:PREPARED 4:PREPARED"},
		{here("4"), "activate 4, retire 1, retire 3", "1:REMOVING 3:REMOVING 4:ACTIVE*"},
	},
	"a node that has served nothing does not begin with something older than what other nodes serve": {
		{start{Start{Taken: in("3")}, list("2", "4")}, "open 3, open 4, open 2", "2:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{waiting("4"), "", "2:AVAILABLE 3:AVAILABLE 4:PREPARED"},
		{NotFound{in("3")}, "load 3", "2:AVAILABLE 3:BUILDING 4:PREPARED"},
		{elsewhere("2"), "retire 2", "2:REMOVING 3:BUILDING 4:PREPARED"},
		{Planned{in("3"), false}, "", "2:REMOVING 3:PREPARED 4:PREPARED"},
		{elsewhere("3"), "activate 3", "2:REMOVING 3:ACTIVE* 4:PREPARED"},
	},
	"what other nodes serve is held here: a newer version does not wait for it": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "3", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{held("3"), "load 4", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
	},
	"other nodes report that they hold back what was served: a newer version does not wait until it is here": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "3", "4")}, "open 1, open 3, open 4", "1:AVAILABLE 3:AVAILABLE 4:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("4")}, "", "1:ACTIVE* 3:AVAILABLE 4:AVAILABLE"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING 4:AVAILABLE"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 3:PREPARED 4:AVAILABLE"},
		{Seen{Input: in("3"), Readable: true, Held: true}, "load 4", "1:ACTIVE* 3:PREPARED 4:BUILDING"},
	},
	"the source lists other files of the version that other nodes serve, which is loaded first": {
		{start{Start{Local: inputs("1"), Served: in("1"), Taken: in("3")}, list("1", "3~f")}, "open 1, open 3, open 3~f", "1:AVAILABLE 3:AVAILABLE 3~f:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 3:AVAILABLE 3~f:AVAILABLE"},
		{waiting("3~f"), "", "1:ACTIVE* 3:AVAILABLE 3~f:PREPARED"},
		{partly("3~f"), "", "1:ACTIVE* 3:AVAILABLE 3~f:PREPARED"},
		{NotFound{in("3")}, "load 3", "1:ACTIVE* 3:BUILDING 3~f:PREPARED"},
		{Planned{in("3"), false}, "", "1:ACTIVE* 3:PREPARED 3~f:PREPARED"},
		{here("3"), "activate 3, retire 1, load 3~f", "1:REMOVING 3:ACTIVE* 3~f:PREPARED"},
		{here("3~f"), "activate 3~f, retire 3, cancel 3", "1:REMOVING 3:REMOVING 3~f:ACTIVE*"},
	},
	"what other nodes serve is not allowed by the pin": {
		{Start{Local: inputs("1"), Served: in("1"), Taken: in("3"), Pin: pin.File{Exclude: []string{"3"}}}, "open 1, open 3", "1:AVAILABLE 3:AVAILABLE"},
		{elsewhere("3"), "", "1:AVAILABLE 3:PREPARED"},
		{here("1"), "activate 1", "1:ACTIVE* 3:PREPARED"},
		{pinned(pin.File{Exclude: []string{"3"}}, "1", "4"), "open 4, retire 3", "1:ACTIVE* 3:REMOVING 4:AVAILABLE"},
	},
}

// lostScripts are of a node that has lost its state, and of failures from before a restart.
var lostScripts = map[string][]step{
	"a node that has lost its state does not go behind the greatest name on its disk": {
		{Start{Local: inputs("1", "2", "3"), Served: in("3"), Likely: true}, "open 3, open 2, open 1", "1:AVAILABLE 2:AVAILABLE 3:AVAILABLE"},
		{here("2"), "", "1:AVAILABLE 2:PREPARED 3:AVAILABLE"},
		{partly("3"), "", "1:AVAILABLE 2:PREPARED 3:PREPARED"},
		{list("1", "2", "3"), "load 3", "1:AVAILABLE 2:PREPARED 3:PREPARED"},
		{here("1"), "", "1:PREPARED 2:PREPARED 3:PREPARED"},
		{here("3"), "activate 3, retire 1, retire 2", "1:REMOVING 2:REMOVING 3:ACTIVE*"},
	},
	"what a node that has lost its state has likely served is held": {
		{Start{Local: inputs("1", "2"), Served: in("2"), Likely: true}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{held("2"), "", "1:AVAILABLE 2:PREPARED"},
		{here("1"), "", "1:PREPARED 2:PREPARED"},
		{Unlisted{}, "activate 1", "1:ACTIVE* 2:PREPARED"},
	},
	"what a node that has lost its state has likely served is faulty": {
		{start{Start{Local: inputs("1", "2"), Served: in("2"), Likely: true}, list("1", "2")}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{here("1"), "", "1:PREPARED 2:AVAILABLE"},
		{NotFound{in("2")}, "load 2", "1:PREPARED 2:BUILDING"},
		{bad("2"), "activate 1", "1:ACTIVE* 2:ERROR"},
	},
	"what failed before a restart is not loaded before a retry": {
		{start{Start{Local: inputs("1", "2"), Served: in("1"), Failures: []failed{{in("2"), "bad", true}, {in("3"), "away", false}}}, list("1", "2", "3")},
			"open 1, open 2, open 3", "1:AVAILABLE 2:ERROR 3:ERROR"},
		{here("1"), "activate 1", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{NotFound{in("2")}, "", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{NotFound{in("3")}, "", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{list("1", "2", "3"), "", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:ACTIVE* 2:ERROR 3:ERROR"},
		{Retry{in("2")}, "load 2", "1:ACTIVE* 2:ERROR 3:ERROR"},
	},
	"what failed before a restart and has other files now is loaded at once": {
		{start{Start{Local: inputs("1", "2"), Served: in("1"), Failures: []failed{{in("2"), "bad", true}}}, list("1", "2~f")},
			"open 1, open 2, open 2~f", "1:AVAILABLE 2:ERROR 2~f:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 2:ERROR 2~f:AVAILABLE"},
		{NotFound{in("2~f")}, "load 2~f", "1:ACTIVE* 2:ERROR 2~f:BUILDING"},
		{NotFound{in("2")}, "delete 2", "1:ACTIVE* 2:REMOVING 2~f:BUILDING"},
	},
	"a failure from before a restart of what is served does not keep it from being loaded": {
		{start{Start{Local: inputs("1"), Served: in("1"), Failures: []failed{{in("1"), "away", false}}}, list("1")}, "open 1", "1:AVAILABLE"},
		{partly("1"), "activate 1, load 1", "1:ACTIVE*"},
	},
}
