// Package harness is the way from Go tests to real Hadoop, ZooKeeper and Sparkey: it gives the fixtures under testdata/fixtures, each with
// what it must hold, and builds and drives the Java program in testdata/harness that wrote them and that runs jobs and servers for tests.
package harness
