// Package cluster tests whole clusters from outside: real processes of the real
// binary, each in a network namespace of its own, with a real ZooKeeper.
//
// The tests run in a network of their own, too: TestMain starts the test program
// a second time in a new network namespace, where a bridge joins the nodes'
// namespaces. So packets between two nodes can be lost like on a broken wire, the
// kernel counts each node's connections, nothing has to be configured on the
// machine, and nothing is left of it when the tests end, however they end.
// ZooKeeper is reached through toxiproxies, one set for each node.
//
// Tests that mostly wait run side by side; those that measure, or ask for a lot, run
// alone before.
//
// TestAllFaults draws what it does from -args -seed, and goes on for the time of -args -faults; without that, each fault comes once.
//
// What clients see is recorded and judged by package checker. See nemesis_test.go
// for what is done to a cluster meanwhile.
package cluster
