package hdfs

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"sequins/source/objects"
)

// Location returns where the source of o is: hdfs://host:port/path for one namenode, and hdfs://nameservice/path with the sorted addresses of
// its namenodes for a nameservice, because clusters often have nameservices of the same name. It reads the configuration but
// does not connect.
func Location(o Options) (string, error) {
	conf, err := readConf(cmp.Or(o.ConfigDir, os.Getenv("HADOOP_CONF_DIR")))
	if err != nil {
		return "", fmt.Errorf("hdfs: %w", err)
	}
	p, err := resolve(o.URL, conf)
	if err != nil {
		return "", fmt.Errorf("hdfs: %w", err)
	}
	addresses := make([]string, 0, len(p.namenodes))
	for _, address := range p.namenodes {
		addresses = append(addresses, strings.ToLower(address))
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if name := strings.ToLower(p.name); len(addresses) == 1 && name == "hdfs://"+addresses[0] {
		return name + objects.EscapePath(p.root), nil
	}
	return p.name + objects.EscapePath(p.root) + " at " + strings.Join(addresses, ","), nil
}
