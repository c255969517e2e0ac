package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/test/ports"
)

const (
	nodes     = 3
	readyTime = 2 * time.Minute // until a cluster is whole
)

// cluster is three nodes of a program with one source.
type cluster struct {
	*bench
	program string
	dir     string
	name    string
	last    int // number of the newest version
	nodes   []*node
}

// node is one of them, which runs or not.
type node struct {
	program, addr, conf, store, log string
	cmd                             *exec.Cmd
	done                            chan error
}

func (b *bench) newCluster(program string) (*cluster, error) {
	b.clusters++
	c := &cluster{bench: b, program: program, name: fmt.Sprintf("drill%d", b.clusters)}
	c.dir = filepath.Join(b.dir, c.name)
	for i := range nodes {
		n, err := c.newNode(i)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

func (c *cluster) source() string { return filepath.Join(c.dir, "source") }

// newNode writes the configuration of a node, with shutdown_delay if the program knows it.
func (c *cluster) newNode(i int) (*node, error) {
	dir := filepath.Join(c.dir, fmt.Sprint(i))
	n := &node{program: c.program, conf: filepath.Join(dir, "sequins.conf"), store: filepath.Join(dir, "store"), log: filepath.Join(dir, "log")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if n.addr, err = ports.Free(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(n.conf, []byte(c.config(n, i, fmt.Sprintf("shutdown_delay = %q\n", delay.String()))), 0o644); err != nil {
		return nil, err
	}
	if exec.Command(c.program, "check-config", n.conf).Run() == nil {
		return n, nil
	}
	return n, os.WriteFile(n.conf, []byte(c.config(n, i, "")), 0o644)
}

func (c *cluster) config(n *node, i int, more string) string {
	return fmt.Sprintf(`source = %q
bind = %q
local_store = %q
refresh_period = "500ms"
require_success_file = true
settle = "0s"
%s[sharding]
enabled = true
cluster_name = %q
advertised_hostname = "127.0.0.1"
shard_id = "n%d"
replication = 2
time_to_converge = "1s"
proxy_timeout = "1s"
[zk]
servers = [%q]
`, c.source(), n.addr, n.store, more, c.name, i, c.zookeeper)
}

// start starts the process.
func (n *node) start() error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	n.cmd = proc.OnCPUs("", n.program, "--config", n.conf)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		return err
	}
	n.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan<- error) { done <- cmd.Wait() }(n.cmd, n.done)
	return nil
}

// end ends the process by a signal and waits for it.
func (n *node) end(s syscall.Signal) error {
	if n.cmd == nil {
		return nil
	}
	if err := n.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := <-n.done
	n.cmd = nil
	if s == syscall.SIGKILL {
		return nil
	}
	return err
}

func (n *node) ready() bool {
	resp, err := http.Get("http://" + n.addr + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// begin starts a cluster with its first version.
func (c *cluster) begin() error {
	if err := c.publish(); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	return c.awaitWhole()
}

func (c *cluster) stop() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.end(syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

func (c *cluster) version() string { return fmt.Sprintf("v%04d", c.last) }

// publish puts the next version into the source, all at once.
func (c *cluster) publish() error {
	c.last++
	return data.Publish(c.input, filepath.Join(c.source(), data.DB, c.version()))
}

// await polls a condition, rarely enough not to affect the measurement.
func await(what string, limit time.Duration, condition func() bool) error {
	for end := time.Now().Add(limit); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%v have passed without: %s", limit, what)
		}
	}
	return nil
}

// awaitWhole waits until every node serves the newest version and sees two replicas of each partition.
func (c *cluster) awaitWhole() error {
	return await("all nodes serve "+c.version(), readyTime, func() bool {
		for _, n := range c.nodes {
			if !n.ready() || !n.whole(c.version()) {
				return false
			}
		}
		return true
	})
}

// whole reports whether the node serves a version and all replicas of it exist.
func (n *node) whole(version string) bool {
	resp, err := http.Get("http://" + n.addr + "/" + data.DB)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var db struct {
		Versions map[string]struct {
			Missing         int `json:"missing_partitions"`
			Underreplicated int `json:"underreplicated_partitions"`
			Nodes           map[string]struct {
				Current bool `json:"current"`
			} `json:"nodes"`
		} `json:"versions"`
	}
	if json.NewDecoder(resp.Body).Decode(&db) != nil {
		return false
	}
	v := db.Versions[version]
	return v.Missing+v.Underreplicated == 0 && v.Nodes[n.addr].Current
}
