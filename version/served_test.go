package version

// Scripts of what a node serves after a restart, and of versions that come faster than they load.
var servedScripts = map[string][]step{
	"what was served and is excluded since is not active for a moment": {
		{Start{Local: []string{"1", "2"}, Served: "2", Keep: 2, Pin: Pin{Excluded: []string{"2"}}}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{here("2"), "", "1:AVAILABLE 2:PREPARED"},
		{here("1"), "activate 1", "1:ACTIVE* 2:PREPARED"},
	},
	"what was served and is excluded since is served if nothing else can be": {
		{Start{Local: []string{"1", "2"}, Served: "2", Keep: 2, Pin: Pin{Excluded: []string{"2"}}}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{here("2"), "", "1:AVAILABLE 2:PREPARED"},
		{Absent{"1"}, "activate 2", "1:AVAILABLE 2:ACTIVE*"},
	},
	"what was served before is kept although it lacks partitions now": {
		{start{Start{Local: []string{"1", "2"}, Served: "2", Keep: 2, Former: []string{"1", "2"}}, keeping(2, "1", "2")}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{partly("1"), "", "1:PREPARED 2:AVAILABLE"},
		{here("2"), "activate 2", "1:PREPARED 2:ACTIVE*"},
	},
	"what was served is served at once in part, while the rest is loaded, and an older version is not": {
		{restart("2", []string{"1", "2"}, []string{"1", "2"}), "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{partly("2"), "activate 2, load 2", "1:AVAILABLE 2:ACTIVE*"},
		{here("1"), "retire 1", "1:REMOVING 2:ACTIVE*"},
		{away("2"), "", "1:REMOVING 2:ACTIVE*"},
		{Retry{"2"}, "load 2", "1:REMOVING 2:ACTIVE*"},
		{here("2"), "", "1:REMOVING 2:ACTIVE*"},
	},
	"in a cluster, it is served in part when other nodes have had time to advertise theirs": {
		{start{Start{Local: []string{"1", "2"}, Served: "2", Waiting: true}, list("1", "2")}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{waiting("2"), "", "1:AVAILABLE 2:PREPARED"},
		{waiting("1"), "", "1:PREPARED 2:PREPARED"},
		{Waited{}, "activate 2, retire 1", "1:REMOVING 2:ACTIVE*"},
	},
	"what was only likely served is not served in part before a load of it has failed": {
		{start{Start{Local: []string{"1", "2"}, Served: "2", Likely: true}, list("1", "2")}, "open 2, open 1", "1:AVAILABLE 2:AVAILABLE"},
		{partly("2"), "load 2", "1:AVAILABLE 2:PREPARED"},
		{here("1"), "", "1:PREPARED 2:PREPARED"},
		{away("2"), "activate 2, retire 1", "1:REMOVING 2:ACTIVE*"},
	},
	"what was only likely served and is complete here is served": {
		{start{Start{Local: []string{"2"}, Served: "2", Likely: true}, list("2")}, "open 2", "2:AVAILABLE"},
		{waiting("2"), "activate 2", "2:ACTIVE*"},
	},
	"what was served and has gone is kept while there is nothing else, as other nodes may come back with it": {
		{start{Start{Local: []string{"2"}, Served: "2", Waiting: true}, list()}, "open 2", "2:AVAILABLE"},
		{Absent{"2"}, "", "2:AVAILABLE"},
		{Waited{}, "", "2:AVAILABLE"},
		{Surveyed{}, "open 2", "2:AVAILABLE"},
		{here("2"), "activate 2", "2:ACTIVE*"},
	},
	"what was served and has gone is given up when there is something else": {
		{start{Start{Local: []string{"2"}, Served: "2", Waiting: true}, list()}, "open 2", "2:AVAILABLE"},
		{Absent{"2"}, "", "2:AVAILABLE"},
		{Waited{}, "", "2:AVAILABLE"},
		{list("1"), "open 2", "2:AVAILABLE"},
		{Absent{"2"}, "load 1, delete 2", "1:BUILDING 2:REMOVING"},
	},
	"versions that come faster than they load: after one load was given up, the next is not": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{list("1", "2", "3"), "load 3, cancel 2", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{LoadEnded{Version: "2", Err: "cancelled"}, "delete 2", "1:ACTIVE* 2:REMOVING 3:BUILDING"},
		{Deleted{"2", ""}, "", "1:ACTIVE* 3:BUILDING"},
		{list("1", "2", "3", "4"), "load 4", "1:ACTIVE* 3:BUILDING 4:BUILDING"},
		{list("1", "2", "3", "4", "5"), "load 5, cancel 4", "1:ACTIVE* 3:BUILDING 4:REMOVING 5:BUILDING"},
		{Planned{"3", false}, "prepare 3", "1:ACTIVE* 3:PREPARED 4:REMOVING 5:BUILDING"},
		{here("3"), "activate 3, retire 1", "1:REMOVING 3:ACTIVE* 4:REMOVING 5:BUILDING"},
		{ok("3"), "", "1:REMOVING 3:ACTIVE* 4:REMOVING 5:BUILDING"},
		{list("3", "4", "5", "6"), "load 6, cancel 5", "1:REMOVING 3:ACTIVE* 4:REMOVING 5:REMOVING 6:BUILDING"},
	},
	"damage of a version that lingers is set aside, and loaded again if the version comes back": {
		{source("1"), "open 1", "1:AVAILABLE"},
		{here("1"), "activate 1", "1:ACTIVE*"},
		{list("1", "2"), "load 2", "1:ACTIVE* 2:BUILDING"},
		{Planned{"2", false}, "prepare 2", "1:ACTIVE* 2:PREPARED"},
		{waiting("2"), "", "1:ACTIVE* 2:PREPARED"},
		{ok("2"), "", "1:ACTIVE* 2:PREPARED"},
		{list("1"), "retire 2", "1:ACTIVE* 2:REMOVING"},
		{Corrupted{"2", 0}, "set aside 2/0", "1:ACTIVE* 2:REMOVING"},
		{partly("2"), "", "1:ACTIVE* 2:REMOVING"},
		{list("1", "2"), "revive 2, load 2", "1:ACTIVE* 2:PREPARED"},
	},
}
