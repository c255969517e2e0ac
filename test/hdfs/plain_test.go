//go:build integration

package hdfs

import (
	"testing"

	"sequins/test/sourcetest"
)

// One cluster for all that needs nothing special: three datanodes, each block on two of them, and ten files on a page of a listing.
func TestPlain(t *testing.T) {
	c := start(t, "dn=3 rep=2 dfs.ls.limit=10 dfs.heartbeat.interval=1 dfs.namenode.redundancy.interval.seconds=1")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"Conformance", func(t *testing.T, c *cluster) {
			sourcetest.Run(t, 10, func(*testing.T) sourcetest.Place { return c.newDir() })
		}},
		{"Errors", testErrors},
		{"FileChanges", testFileChanges},
		{"ReplacedBeforeReading", testReplacedBeforeReading},
		{"BadReplicas", testBadReplicas},
		{"ErasureCoded", testErasureCoded},
		{"Closing", testClosing},
		{"Connections", testConnections},
		{"OneDatanodeAway", testOneDatanodeAway},
		{"SilentNamenode", testSilentNamenode},
		{"CancelWhileSilent", testCancelWhileSilent},
		{"DatanodeKilled", testDatanodeKilled},
		{"Node", testNode},
		{"Build", testBuild},
		{"Files", testFiles},
		{"Checksums", testChecksums},
		{"Unchanged", testUnchanged},
		{"Bandwidth", testBandwidth},
		{"OnlyWhatIsNeeded", testOnlyWhatIsNeeded},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}
