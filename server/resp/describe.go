package resp

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"
)

// command answers COMMAND, which clients send when they connect, with an empty list: they know the commands of Redis by themselves.
func (c *conn) command([][]byte) { c.w.array(0) }

// info answers INFO with the lines that monitoring and clients read, whichever sections are asked for.
func (c *conn) info([][]byte) {
	s := c.server
	_, port, _ := net.SplitHostPort(c.LocalAddr().String()) // it is an address
	up, starting := time.Since(s.started), 0
	if s.reads.Holding() {
		starting = 1 // for clients that wait until a server has loaded its data
	}
	lines := []string{
		"# Server", "redis_version:" + serverVersion, "redis_mode:standalone", "os:" + runtime.GOOS + " " + runtime.GOARCH, "arch_bits:64",
		fmt.Sprintf("process_id:%d", os.Getpid()), "tcp_port:" + port,
		fmt.Sprintf("uptime_in_seconds:%d", int(up.Seconds())), fmt.Sprintf("uptime_in_days:%d", int(up.Hours()/24)), "sequins_version:" + s.opts.Build, "",
		"# Clients", fmt.Sprintf("connected_clients:%d", s.open.Count()), fmt.Sprintf("maxclients:%d", s.open.Max), "",
		"# Persistence", fmt.Sprintf("loading:%d", starting), "",
		"# Replication", "role:master", "connected_slaves:0", "",
		"# Cluster", "cluster_enabled:0", "",
	}
	c.w.text(strings.Join(lines, "\r\n"))
}

func (c *conn) ping(args [][]byte) {
	switch len(args) {
	case 1:
		c.w.simple("PONG")
	case 2:
		c.w.bulk(args[1])
	default:
		c.w.fail(wrongArity("ping"))
	}
}

func (c *conn) quit([][]byte) {
	c.w.simple("OK")
	c.closing = true
}
