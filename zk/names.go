package zk

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"sequins/internal/content"
)

// The directories below the root. All names, and the names inside these directories, are the same in all releases and
// in the original sequins, so that nodes of different releases can form one cluster. ShardIDsDir, GatesDir and
// AssignmentDir exist in this release only.
const (
	NodesDir      = "nodes"      // one znode for each node that holds data
	RoutersDir    = "routers"    // one for each node that holds no data
	PartitionsDir = "partitions" // a directory for each database; in it, one for each version
	GatesDir      = "gates"      // a directory for each database; in it, one for each version that nodes report figures of
	ShardIDsDir   = "shard_ids"  // one for each automatically chosen shard id; its data is the node's address
	AssignmentDir = "assignment" // a persistent znode whose name is the rule by which nodes divide partitions
)

// maxPartition is the greatest partition number that is accepted, as a version has no more (shard.MaxPartitions). It limits the size of tables by partition.
const maxPartition = 1<<16 - 1

// NodePath returns the path of a node: nodes/<shard id>@<host>:<port>.
func NodePath(shardID, addr string) string { return NodesDir + "/" + shardID + "@" + addr }

// RouterPath returns the path of a node that holds no data.
func RouterPath(shardID, addr string) string { return RoutersDir + "/" + shardID + "@" + addr }

// ShardIDPath returns the path by which a node claims an automatically chosen shard id.
func ShardIDPath(shardID string) string { return ShardIDsDir + "/" + shardID }

// AssignmentPath returns the path of a rule by which nodes divide partitions.
func AssignmentPath(rule string) string { return AssignmentDir + "/" + rule }

// VersionDir returns the directory of a version's partitions.
func VersionDir(db, version string) string { return PartitionsDir + "/" + db + "/" + version }

// GateDir returns the directory of what nodes report of a version.
func GateDir(db, version string) string { return GatesDir + "/" + db + "/" + version }

// ReportPath returns the path of what a node reports of a content: gates/<db>/<version>/<input>.<division>@<host>:<port>.
func ReportPath(db string, c content.Content, addr string) string {
	return GateDir(db, c.Name) + "/" + c.Code() + "@" + addr
}

// ParseReport parses a name in the GateDir of a version.
func ParseReport(version, name string) (c content.Content, addr string, err error) {
	code, addr, found := strings.Cut(name, "@")
	if !found {
		return content.Content{}, "", fmt.Errorf("znode %q: not of the form <input>.<division>@<host>:<port>", name)
	}
	if c, err = content.Parse(version, code); err == nil {
		err = checkAddr(addr)
	}
	if err != nil {
		return content.Content{}, "", fmt.Errorf("znode %q: %w", name, err)
	}
	return c, addr, nil
}

// PartitionPath returns the path by which a node announces that it holds a partition:
// partitions/<db>/<version>/<partition, at least five digits>@<host>:<port>.
func PartitionPath(db, version string, partition int, addr string) string {
	return fmt.Sprintf("%s/%05d@%s", VersionDir(db, version), partition, addr)
}

// ParseNode parses a name in NodesDir or RoutersDir. It accepts only names that NodePath and RouterPath produce.
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

// ParsePartition parses a name in a VersionDir. It accepts only names that PartitionPath produces, so that two
// different names never mean the same.
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

// checkAddr accepts addresses as nodes write them: a non-empty host, and a port without sign or leading zeros.
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
