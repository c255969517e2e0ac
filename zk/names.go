package zk

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The directories below the root. Their names and those of what is in them are the same in all releases, and in the
// system that sequins replaces, so that nodes of different releases can form one cluster. ShardIDsDir is of this release.
const (
	NodesDir      = "nodes"      // one znode for each node that holds data
	RoutersDir    = "routers"    // one for each that only passes requests on
	PartitionsDir = "partitions" // a directory for each database, and in it one for each version
	ShardIDsDir   = "shard_ids"  // one for each shard id that a node has chosen itself, with the node's address as data
)

// maxPartition is the greatest partition that is believed: versions have far fewer files.
const maxPartition = 1<<31 - 1

// NodePath is where a node is published: nodes/<shard id>@<host>:<port>.
func NodePath(shardID, addr string) string { return NodesDir + "/" + shardID + "@" + addr }

// RouterPath is where a node is published that holds no data.
func RouterPath(shardID, addr string) string { return RoutersDir + "/" + shardID + "@" + addr }

// ShardIDPath is where a node claims a shard id that it has chosen itself.
func ShardIDPath(shardID string) string { return ShardIDsDir + "/" + shardID }

// DatabaseDir is the directory that has a directory for each version of a database.
func DatabaseDir(db string) string { return PartitionsDir + "/" + db }

// VersionDir is the directory of a version's partitions.
func VersionDir(db, version string) string { return PartitionsDir + "/" + db + "/" + version }

// PartitionPath is where a node is published as one that holds a partition:
// partitions/<db>/<version>/<partition, at least five digits>@<host>:<port>.
func PartitionPath(db, version string, partition int, addr string) string {
	return fmt.Sprintf("%s/%05d@%s", VersionDir(db, version), partition, addr)
}

// ParseNode takes a name in NodesDir or RoutersDir apart. What it returns gives the same name again.
func ParseNode(name string) (shardID, addr string, err error) {
	shardID, addr, found := strings.Cut(name, "@")
	if !found || shardID == "" {
		return "", "", fmt.Errorf("znode %q: not of the form <shard id>@<host>:<port>", name)
	}
	if err := checkAddr(addr); err != nil {
		return "", "", fmt.Errorf("znode %q: %w", name, err)
	}
	return shardID, addr, nil
}

// ParsePartition takes a name in a VersionDir apart. What it returns gives the same name again, so that no two names
// stand for the same.
func ParsePartition(name string) (partition int, addr string, err error) {
	digits, addr, found := strings.Cut(name, "@")
	if !found {
		return 0, "", fmt.Errorf("znode %q: not of the form <partition>@<host>:<port>", name)
	}
	partition, err = strconv.Atoi(digits)
	if err != nil || partition < 0 || partition > maxPartition || fmt.Sprintf("%05d", partition) != digits {
		return 0, "", fmt.Errorf("znode %q: %q is not a partition in at least five digits", name, digits)
	}
	if err := checkAddr(addr); err != nil {
		return 0, "", fmt.Errorf("znode %q: %w", name, err)
	}
	return partition, addr, nil
}

// checkAddr takes an address as nodes write them: a port is a number without ornaments, a host is not empty.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q is not a port", port)
	}
	if host == "" || strings.ContainsAny(host, "@/ ") {
		return fmt.Errorf("%q is not a host", host)
	}
	return nil
}
