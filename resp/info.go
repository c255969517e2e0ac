package resp

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// info answers INFO. Monitoring and clients read some of its lines; there are no others.
func (c *conn) info(args [][]byte) {
	sections := []struct {
		name string
		text func() string
	}{
		{"server", c.infoServer}, {"clients", c.infoClients}, {"persistence", c.infoPersistence},
		{"replication", c.infoReplication}, {"cluster", func() string { return "cluster_enabled:0\r\n" }},
	}
	var b strings.Builder
	for _, s := range sections {
		if !wants(args[1:], s.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s%s\r\n%s", strings.ToUpper(s.name[:1]), s.name[1:], s.text())
	}
	c.w.verbatim(b.String())
}

// wants reports whether a section was asked for.
func wants(asked [][]byte, section string) bool {
	for _, a := range asked {
		if is(a, strings.ToUpper(section)) || is(a, "ALL") || is(a, "DEFAULT") || is(a, "EVERYTHING") {
			return true
		}
	}
	return len(asked) == 0
}

func (c *conn) infoServer() string {
	_, port, _ := strings.Cut(c.LocalAddr().String()[strings.LastIndexByte(c.LocalAddr().String(), ']')+1:], ":")
	up := time.Since(c.server.started)
	return fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nos:%s %s\r\narch_bits:64\r\nprocess_id:%d\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\nsequins_version:%s\r\n",
		serverVersion, runtime.GOOS, runtime.GOARCH, os.Getpid(), port, int(up.Seconds()), int(up.Hours()/24), c.server.opts.Build)
}

func (c *conn) infoClients() string {
	return fmt.Sprintf("connected_clients:%d\r\nmaxclients:%d\r\n", c.server.Connections(), c.server.opts.MaxConns)
}

// infoPersistence tells clients that wait until a server has loaded its data.
func (c *conn) infoPersistence() string {
	n := 0
	if c.server.holding.Load() {
		n = 1
	}
	return fmt.Sprintf("loading:%d\r\n", n)
}

func (c *conn) infoReplication() string { return "role:master\r\nconnected_slaves:0\r\n" }
