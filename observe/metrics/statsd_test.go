package metrics

import (
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// agentAt returns a DogStatsD agent on a socket, and its address.
func agentAt(t *testing.T, network, address string) (agent net.PacketConn, url string) {
	t.Helper()
	agent, err := net.ListenPacket(network, address)
	expect.NoError(t, err)
	t.Cleanup(func() { agent.Close() }) //nolint:errcheck // only read from
	expect.NoError(t, agent.SetReadDeadline(time.Now().Add(time.Minute)))
	if network == "unixgram" {
		return agent, "unix://" + address
	}
	return agent, agent.LocalAddr().String()
}

// containerID matches what the client adds in a container.
var containerID = regexp.MustCompile(`\|(c|e):[^|]*$`)

// read returns the next n lines that an agent receives.
func read(t *testing.T, agent net.PacketConn, n int) (lines []string) {
	t.Helper()
	packet := make([]byte, 64<<10)
	for len(lines) < n {
		size, _, err := agent.ReadFrom(packet)
		if err != nil {
			t.Fatalf("%v after %q", err, lines)
		}
		for line := range strings.Lines(string(packet[:size])) {
			lines = append(lines, containerID.ReplaceAllString(strings.TrimSuffix(line, "\n"), ""))
		}
	}
	slices.Sort(lines)
	return lines
}

// The agent receives what Stripe's sequins sent, in the same format.
func TestStatsd(t *testing.T) {
	for _, at := range [][2]string{{"udp", "127.0.0.1:0"}, {"unixgram", filepath.Join(t.TempDir(), "agent")}} {
		agent, url := agentAt(t, at[0], at[1])
		m := New()
		s, err := m.SendTo(url, "words")
		expect.NoError(t, err)
		m.Load.Statsd.File("a", 1500*time.Microsecond)
		m.Load.Statsd.Files("a", 2)
		m.Statsd.Active("a", "7", 3*time.Second)
		a := m.Server.DB("a")
		for range 3 {
			a.Clients.Done(0, 200, 1, 1)
		}
		a.Clients.Done(0, 404, 1, 1)
		a.Peers.Done(0, 200, 1, 1)
		m.Server.Unknown.Clients.Done(0, 404, 1, 1)
		m.Server.DB("b")
		m.Load.Statsd.Files("a=1,b", 0)
		m.Server.endPeriods()
		expect.NoError(t, s.Close())
		want := []string{
			"_e{29,41}:A new version is active in a.|Version 7 has been set to active in db a.|#sequins:words,sequins_db:a",
			"sequins.db.requests:4|c|#sequins:words,db:a",
			"sequins.db_creation_time:3000.000000|ms|#sequins:words,sequins_db:a",
			"sequins.s3.download_duration:1.500000|ms|#sequins:words,sequins_db:a",
			"sequins.s3.queue_depth:0|g|#sequins:words,sequins_db:a=1_b",
			"sequins.s3.queue_depth:2|g|#sequins:words,sequins_db:a",
		}
		if diff := cmp.Diff(want, read(t, agent, len(want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", at[0], diff)
		}
	}
}

// Each request is sent once, even if its db is forgotten.
func TestStatsdCountsOnce(t *testing.T) {
	agent, url := agentAt(t, "udp", "127.0.0.1:0")
	m := New()
	s, err := m.SendTo(url, "c")
	expect.NoError(t, err)
	tell := func(want string) {
		t.Helper()
		m.Server.endPeriods()
		expect.NoError(t, s.client.Flush())
		if got := read(t, agent, 1); len(got) != 1 || got[0] != "sequins.db.requests:"+want+"|c|#sequins:c,db:a" {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	done := func(n int) {
		for range n {
			m.Server.DB("a").Clients.Done(0, 200, 1, 1)
		}
	}
	done(5)
	tell("5")
	done(2)
	tell("2")
	m.Server.Forget("a") // and is added again
	done(4)
	tell("4")
	expect.NoError(t, s.Close())
}

// A nil Statsd does nothing, and an unreachable agent does not block.
func TestStatsdOfNobody(t *testing.T) {
	m := New()
	m.Statsd.Active("a", "7", time.Second)
	m.Load.Statsd.Files("a", 1)
	m.Load.Statsd.File("a", time.Second)
	gone, url := agentAt(t, "udp", "127.0.0.1:0")
	gone.Close() //nolint:errcheck // only opened to get an unused address
	s, err := m.SendTo(url, "c")
	expect.NoError(t, err)
	for range 10000 {
		m.Load.Statsd.File("a", time.Second)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := New().SendTo("127.0.0.1:no-such-port", "c"); err == nil {
		t.Error("an address without a port is taken")
	}
}
