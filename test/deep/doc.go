// Package deep tests check-config --deep against real components, HDFS, S3, ZooKeeper, file systems and nodes, each
// with the faults that it is to find.
package deep
