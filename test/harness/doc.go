// Package harness connects Go tests to real Hadoop, ZooKeeper and Sparkey: it reads the fixtures in testdata/fixtures
// with their expected content, and builds and drives the Java program in testdata/harness, which wrote them and runs
// jobs and servers for tests.
package harness
