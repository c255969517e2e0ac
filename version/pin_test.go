package version

import "sequins/version/pin"

func pinned(p pin.File, v ...string) Listed { return Listed{Inputs: inputs(v...), Pin: p} }

func keeping(keep int, v ...string) Listed { return Listed{Inputs: inputs(v...), Keep: keep} }

// pinScripts are further scripts of TestDecide: of pins and of kept versions.
var pinScripts = map[string][]step{
	"an excluded version is replaced by an older one, which is loaded first": {
		{source("1", "2"), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{here("2"), "activate 2", "1:AVAILABLE 2:ACTIVE*"},
		{NotFound{in("1")}, "", "2:ACTIVE*"},
		{pinned(pin.File{Exclude: []string{"2"}}, "1"), "load 1", "1:BUILDING 2:ACTIVE*"},
		{Planned{in("1"), false}, "", "1:PREPARED 2:ACTIVE*"},
		{waiting("1"), "", "1:PREPARED 2:ACTIVE*"},
		{here("1"), "activate 1 back, retire 2", "1:ACTIVE* 2:REMOVING"},
		{ok("1"), "", "1:ACTIVE* 2:REMOVING"},
		{pinned(pin.File{Exclude: []string{"2"}}, "1"), "", "1:ACTIVE* 2:REMOVING"},
		{pinned(pin.File{Exclude: []string{"2"}}, "1", "3"), "load 3", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
	},
	"the time of a pin ends": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{keeping(2, "1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2", "1:PREPARED 2:ACTIVE*"},
		{ok("2"), "", "1:PREPARED 2:ACTIVE*"},
		{Listed{Inputs: inputs("1"), Pin: pin.File{Version: "1"}, Keep: 2}, "activate 1 back", "1:ACTIVE* 2:PREPARED"},
		{Pinned{pin.File{}}, "activate 2", "1:PREPARED 2:ACTIVE*"},
	},
	"a kept version is served at once after a rollback, although the source does not have it any more": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{keeping(2, "1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2", "1:PREPARED 2:ACTIVE*"},
		{ok("2"), "", "1:PREPARED 2:ACTIVE*"},
		{Listed{Pin: pin.File{Exclude: []string{"2"}}, Keep: 2}, "activate 1 back, retire 2", "1:ACTIVE* 2:REMOVING"},
	},
	"a kept version is returned to without as many replicas as an upgrade needs": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{keeping(2, "1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2", "1:PREPARED 2:ACTIVE*"},
		{ok("2"), "", "1:PREPARED 2:ACTIVE*"},
		{Seen{Input: in("1"), Complete: true, Readable: true, Whole: true}, "", "1:PREPARED 2:ACTIVE*"},
		{Listed{Inputs: inputs("1"), Pin: pin.File{Exclude: []string{"2"}}, Keep: 2}, "activate 1 back, retire 2", "1:ACTIVE* 2:REMOVING"},
	},
	"the version that is kept is the newest of the former ones": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{keeping(2, "1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{in("2"), false}, "", "1:ACTIVE* 2:PREPARED"},
		{here("2"), "activate 2", "1:PREPARED 2:ACTIVE*"},
		{ok("2"), "", "1:PREPARED 2:ACTIVE*"},
		{keeping(2, "2", "3"), "load 3", "1:PREPARED 2:ACTIVE* 3:BUILDING"},
		{LoadEnded{Input: in("3"), Err: "disk full", NoRoom: true}, "retire 1", "1:REMOVING 2:ACTIVE* 3:ERROR"},
		{Retry{in("3")}, "load 3", "1:REMOVING 2:ACTIVE* 3:ERROR"},
		{Planned{in("3"), false}, "", "1:REMOVING 2:ACTIVE* 3:ERROR"},
		{here("3"), "activate 3", "1:REMOVING 2:PREPARED 3:ACTIVE*"},
	},
	"kept versions are kept over a restart": {
		{start{Start{Local: inputs("1", "2", "3"), Served: in("3"), Keep: 2}, keeping(2, "3")}, "open 3, open 2, open 1", "1:AVAILABLE 2:AVAILABLE 3:AVAILABLE"},
		{here("1"), "", "1:PREPARED 2:AVAILABLE 3:AVAILABLE"},
		{here("2"), "retire 1", "1:REMOVING 2:PREPARED 3:AVAILABLE"},
		{here("3"), "activate 3", "1:REMOVING 2:PREPARED 3:ACTIVE*"},
	},
	"a restart after a rollback does not forget it, also without the source": {
		{start{Start{Local: inputs("1", "2"), Served: in("1"), Pin: pin.File{Exclude: []string{"2"}}}, Unlisted{}}, "open 1, open 2", "1:AVAILABLE 2:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE* 2:AVAILABLE"},
		{here("2"), "", "1:ACTIVE* 2:PREPARED"},
	},
	"what is not allowed is served after a restart until another version is ready": {
		{start{Start{Local: inputs("2"), Served: in("2")}, pinned(pin.File{Version: "1"}, "1")}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{NotFound{in("1")}, "load 1", "1:BUILDING 2:AVAILABLE"},
		{here("2"), "activate 2", "1:BUILDING 2:ACTIVE*"},
		{Planned{in("1"), false}, "", "1:PREPARED 2:ACTIVE*"},
		{here("1"), "activate 1 back, retire 2", "1:ACTIVE* 2:REMOVING"},
		{list("1", "2"), "revive 2, load 2", "1:ACTIVE* 2:PREPARED"},
	},
	"newer versions are not loaded while an older one is pinned": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{pinned(pin.File{Version: "1"}, "1"), "cancel 2", "1:ACTIVE* 2:REMOVING"},
		{LoadEnded{Input: in("2"), Err: "cancelled"}, "delete 2", "1:ACTIVE* 2:REMOVING"},
	},
}
