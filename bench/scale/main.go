// Command scale simulates what ZooKeeper has to carry while a large cluster upgrades: nodes load their partitions for
// some minutes and advertise each as it is finished, and every node follows all of them.
//
// It is arithmetic with a clock of its own: the same flags give the same tables, in seconds. Its model is in
// simulate.go; what it leaves out is in README.md, as are the results.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

var (
	load = flag.Duration("load", 5*time.Minute, "how long a node takes to load its share, on average")
	link = flag.Float64("link", 125, "what one server of the ensemble can send, in MB/s")
	name = flag.Int("name", 41, "bytes of a partition's znode: 00000@<host>:<port>")
	seed = flag.Uint64("seed", 1, "of all that is random")
)

func main() {
	flag.Parse()
	clusters := []cluster{
		{nodes: 10, databases: 1, partitions: 100, replication: 2},
		{nodes: 100, databases: 1, partitions: 1000, replication: 2},
		{nodes: 1000, databases: 100, partitions: 100, replication: 2},
		{nodes: 1000, databases: 1, partitions: 1000, replication: 2},
		{nodes: 1000, databases: 1, partitions: 4000, replication: 2},
		{nodes: 1000, databases: 1, partitions: 10000, replication: 2},
		{nodes: 1000, databases: 1, partitions: 10000, replication: 3},
		{nodes: 1000, databases: 10, partitions: 10000, replication: 2},
	}
	fmt.Printf("%v to load, three servers that send %g MB/s each, names of %d bytes\n\n", *load, *link, *name)
	fmt.Println("| nodes | dbs × partitions × replicas | way | znodes | one listing | listings a node | read by a node | ensemble sends, mean | peak | writes/s | last node switches after | sees all after |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, c := range clusters {
		for _, w := range []way{naive, coalesced} {
			if w == naive && c.databases*c.partitions > 20_000 {
				continue // the ensemble would do nothing else for hours
			}
			s := newSimulation(c, w, *load, *link*1e6, *name, *seed)
			s.run()
			s.print(os.Stdout)
		}
	}
}
