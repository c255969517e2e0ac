//go:build integration

package alerts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sequins/test/process"
)

// member describes a node of a cluster, which has a ZooKeeper of its own.
func (s *scene) member(zookeeper, shard, sharding string) process.Config {
	c := s.config(polling)
	c.Sections = fmt.Sprintf("[sharding]\nenabled = true\ncluster_name = %q\nadvertised_hostname = \"127.0.0.1\"\nshard_id = %q\n"+
		"time_to_converge = \"500ms\"\n%s\n[zk]\nservers = [%q]\nsession_timeout = \"2s\"\n", "of-"+s.name, shard, sharding, zookeeper)
	return c
}

func (s *scene) startZookeeper() string {
	s.Helper()
	return s.java.Do(s, "zk start n=1 id="+s.name)["connect"]
}

// together has nodes wait for each other when they start for the first time.
const together = "min_nodes = %d\n"

// cluster starts n nodes, and waits until they serve version 1.
func (s *scene) cluster(n int, sharding string) (configs []process.Config, nodes []*process.Node) {
	s.Helper()
	s.write("1")
	zookeeper := s.startZookeeper()
	for i := range n {
		configs = append(configs, s.member(zookeeper, fmt.Sprint(i), fmt.Sprintf(together, n)+sharding))
		nodes = append(nodes, process.Launch(s, configs[i]))
	}
	for _, node := range nodes {
		node.WaitCurrent(s, s.name, "1")
	}
	for i := range configs { // alone, each starts with what there is
		configs[i].Sections = strings.Replace(configs[i].Sections, fmt.Sprintf(together, n), "", 1)
	}
	s.watch(nodes...)
	return configs, nodes
}

// killed: of three nodes one is gone, then two, and what only these two had is gone too.
func killed(s *scene) {
	configs, nodes := s.cluster(3, "replication = 2")
	a := nodes[0]
	s.ask(a)
	s.quiet("SequinsDown", at(nodes[2]))
	s.quiet("SequinsPartitionsUnderreplicated", s.of(a))
	s.quiet("SequinsPartitionsMissing", s.of(a))
	s.quiet("SequinsErrors", s.of(a))

	nodes[2].Kill()
	s.fires("SequinsDown", at(nodes[2]))
	_, err := nodes[2].TryGet("/livez")
	s.leads("SequinsDown", "If `curl http://NODE:9599/livez` answers", fmt.Sprint(err), "connection refused")
	nodes[1].Kill()
	s.fires("SequinsPartitionsMissing", s.of(a))
	s.leads("SequinsPartitionsMissing", "requests for keys in them fail with 502", s.codes(a), "200", "502")
	s.leads("SequinsPartitionsMissing", "`sequins status` counts them", s.run("status", "--server", a.Addr), "partitions on no node: 1")
	s.fires("SequinsErrors", s.of(a))
	s.leads("SequinsErrors", "502: no other node that can be reached holds the key's partition", a.Metrics(s), `sequins_requests_total{code="502",db="killed",route="key"}`)

	nodes[1] = process.Start(s, configs[1])
	s.watch(a, nodes[1])
	s.quiet("SequinsPartitionsMissing", s.of(a))
	s.quiet("SequinsErrors", s.of(a))
	s.fires("SequinsPartitionsUnderreplicated", s.of(a))
	s.leads("SequinsPartitionsUnderreplicated", "`sequins status` on each", s.run("status", "--server", nodes[2].Addr), "refuses the connection")
	nodes[2] = process.Start(s, configs[2])
	s.watch(nodes...)
	s.quiet("SequinsDown", at(nodes[2]))
	s.quiet("SequinsPartitionsUnderreplicated", s.of(a))
}

// silent: a node has every connection and answers nothing.
func silent(s *scene) {
	_, nodes := s.cluster(2, "replication = 1")
	a, b := nodes[0], nodes[1]
	s.ask(a)
	s.quiet("SequinsPeersFailing", at(a))
	s.quiet("SequinsSlow", at(a))
	s.quiet("SequinsErrors", s.of(a))

	b.Signal(s, syscall.SIGSTOP)
	s.fires("SequinsPeersFailing", at(a))
	s.leads("SequinsPeersFailing", "The log names the nodes", a.Log(), b.Addr)
	s.fires("SequinsSlow", at(a))
	s.leads("SequinsSlow", "`sequins_proxy_attempts_total` by `stage`", a.Metrics(s), `sequins_proxy_attempts_total{outcome="timeout",stage="1",zone="unknown"}`)
	s.fires("SequinsErrors", s.of(a))
	s.leads("SequinsErrors", "504: other nodes took longer than `proxy_timeout`", a.Metrics(s), `sequins_requests_total{code="504",db="silent",route="key"}`)

	b.Signal(s, syscall.SIGCONT)
	s.quiet("SequinsPeersFailing", at(a))
	s.quiet("SequinsSlow", at(a))
	s.quiet("SequinsErrors", s.of(a))
}

// changedVersion: two nodes are active by different files of a version, to which a damaged one has been added since.
func changedVersion(s *scene) {
	s.write("_")
	part := func(version string, i int) string {
		return filepath.Join(s.source(), s.name, version, fmt.Sprintf("part-r-%05d", i))
	}
	add := func(i int, cut int) {
		data, err := os.ReadFile(part("_", i))
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(part("1", i)), 0o755)); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(part("1", i), data[:len(data)-cut], 0o644); err != nil {
			s.Fatal(err)
		}
	}
	zookeeper := s.startZookeeper()
	var configs []process.Config
	for i := range 2 {
		c := s.member(zookeeper, fmt.Sprint(i), "replication = 2\nmin_replication = 1\n")
		c.Extra += "\nsettle = \"300ms\""
		add(i, 0)
		n := process.Serve(s, c, s.name, "1")
		n.Stop(s)
		configs = append(configs, c)
	}
	a := process.Start(s, configs[0])
	s.watch(a)
	s.quiet("SequinsVersionDiverged", s.of(a))
	add(2, 5)
	b := process.Start(s, configs[1])
	s.watch(a, b)
	s.fires("SequinsVersionDiverged", s.of(a))
	s.fires("SequinsVersionDiverged", s.of(b))
	s.leads("SequinsVersionDiverged", "The reason is in `problems`", string(a.Get(s, "/").Body), "part-r-00002", "offset")
	s.leads("SequinsVersionDiverged", "in `sequins status`", s.run("status", "--server", a.Addr), "part-r-00002", "offset")
	s.leads("SequinsVersionDiverged", "and in the log", a.Log(), "part-r-00002", "offset")
	add(2, 0)
	s.quiet("SequinsVersionDiverged", s.of(a))
	s.quiet("SequinsVersionDiverged", s.of(b))
}

// zookeeperLost: its only server is killed.
func zookeeperLost(s *scene) {
	_, nodes := s.cluster(1, "replication = 1")
	n := nodes[0]
	s.quiet("SequinsZooKeeperLost", at(n))
	s.java.Do(s, "zk kill i=0 id="+s.name)
	s.fires("SequinsZooKeeperLost", at(n))
	s.leads("SequinsZooKeeperLost", "The reason is in `sequins status`", s.run("status", "--server", n.Addr), "ZooKeeper")
	s.leads("SequinsZooKeeperLost", "in the log: servers that do not answer", n.Log(), "connection lost")
	s.leads("SequinsZooKeeperLost", "Requests are answered from what it last knew", s.codes(n), "200")
	s.java.Do(s, "zk restart i=0 id="+s.name)
	s.quiet("SequinsZooKeeperLost", at(n))
}

// settingsDiffer: a second node joins that has another idea of how often everything is held.
func settingsDiffer(s *scene) {
	s.write("1")
	zookeeper := s.startZookeeper()
	a := process.Serve(s, s.member(zookeeper, "a", "replication = 1"), s.name, "1")
	s.watch(a)
	s.quiet("SequinsClusterSettings", at(a))
	s.quiet("SequinsSettingsDiffer", at(a))
	b := process.Start(s, s.member(zookeeper, "b", "replication = 2"))
	s.watch(a, b)
	s.fires("SequinsClusterSettings", at(a))
	s.fires("SequinsClusterSettings", at(b))
	s.leads("SequinsClusterSettings", "The log and the status page name the nodes and what differs", a.Log(), b.Addr, "replication")
	s.leads("SequinsClusterSettings", "the status page", s.run("status", "--server", a.Addr), b.Addr, "replication")
	s.fires("SequinsSettingsDiffer", at(a))
	s.fires("SequinsSettingsDiffer", at(b))
	s.leads("SequinsSettingsDiffer", "name each setting with its values and nodes", s.run("status", "--server", a.Addr), "sharding.replication differs: 1 on "+a.Addr+"; 2 on "+b.Addr)
	s.leads("SequinsSettingsDiffer", "the log", a.Log(), "sharding.replication differs: 1 on "+a.Addr+"; 2 on "+b.Addr)
	b.Stop(s)
	s.watch(a)
	s.quiet("SequinsClusterSettings", at(a))
	s.quiet("SequinsSettingsDiffer", at(a))
}
