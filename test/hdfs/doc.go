// Package hdfs holds source/hdfs to real HDFS: the conformance suite, loads while datanodes and namenodes are killed, fail over or fall
// silent, connections that are slow or broken, Kerberos, and a node that serves what a job has just written. The clusters run in
// test/harness.
package hdfs
