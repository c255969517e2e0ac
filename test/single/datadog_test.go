//go:build integration

package single

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// agent is a DogStatsD agent that records what it receives.
type agent struct {
	conn  net.PacketConn
	mu    sync.Mutex
	lines []string
	done  chan struct{}
}

func startAgent(t *testing.T) *agent {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	expect.NoError(t, err)
	a := &agent{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		packet := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(packet)
			if err != nil {
				return // it was closed
			}
			a.mu.Lock()
			a.lines = append(a.lines, strings.Split(strings.TrimSpace(string(packet[:n])), "\n")...)
			a.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		conn.Close() //nolint:errcheck // it was only read
		<-a.done
	})
	return a
}

// values are those of a metric with a tag, in the order in which they came.
func (a *agent) values(t *testing.T, name, kind, tag string) (all []float64) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `:([0-9.]+)\|` + kind + `\|#sequins:birds,` + regexp.QuoteMeta(tag) + `(\||$)`)
	for _, line := range a.lines {
		if m := form.FindStringSubmatch(line); m != nil {
			v, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, v)
		}
	}
	return all
}

// said returns how many lines have a prefix.
func (a *agent) said(prefix string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// unknown are the names that the first sequins did not send.
func (a *agent) unknown() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := regexp.MustCompile(`^(_e\{|sequins\.(db\.requests|db_creation_time|s3\.queue_depth|s3\.download_duration):)`)
	for _, line := range a.lines {
		if !known.MatchString(line) {
			names = append(names, line)
		}
	}
	return names
}

// The agent of [datadog] gets the metrics of loads, versions and requests, with the names of Stripe's sequins, and
// has all of them when the node has ended.
func TestDatadog(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	source, c := newNode(t)
	writeVersion(t, source, "words", "1", 3, 1000, numbered("1"))
	c.Sections = fmt.Sprintf("[sharding]\ncluster_name = \"birds\"\n[datadog]\nurl = %q\n", a.conn.LocalAddr())
	n := process.Serve(t, c, "words", "1")
	for i := range 20 {
		n.Expect(t, fmt.Sprintf("/words/key-%06d", i), 200, "1", "")
	}
	n.Expect(t, "/words/absent", 404, "1", "")
	n.Expect(t, "/words/key-000001?proxy=1", 200, "1", "") // of another node
	n.Expect(t, "/none/key", 404, "", "")
	writeVersion(t, source, "words", "2", 4, 1000, numbered("2"))
	n.WaitCurrent(t, "words", "2")
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	// All that was sent lies in the socket's buffer, and nothing comes after it.
	const tag = "sequins_db:words"
	requests := func() (total float64) {
		for _, v := range a.values(t, "sequins.db.requests", "c", "db:words") {
			total += v
		}
		return total
	}
	files := func() []float64 { return a.values(t, "sequins.s3.download_duration", "ms", tag) }
	took := func() []float64 { return a.values(t, "sequins.db_creation_time", "ms", tag) }
	left := func() float64 {
		all := a.values(t, "sequins.s3.queue_depth", "g", tag)
		if len(all) == 0 {
			return -1
		}
		return all[len(all)-1]
	}
	process.Eventually(t, "the agent has read it all", func() bool {
		return requests() >= 21 && len(files()) >= 3+4 && len(took()) >= 2 && left() == 0 && a.said("_e{") >= 2
	})
	if requests() != 21 || len(files()) != 7 || len(took()) != 2 {
		t.Errorf("%v requests; files were read in %v ms, versions active after %v ms", requests(), files(), took())
	}
	for _, ms := range append(files(), took()...) {
		if ms <= 0 || ms > float64(process.Deadline/time.Millisecond) {
			t.Errorf("something has taken %v ms", ms)
		}
	}
	for _, version := range []string{"1", "2"} {
		event := "_e{33,45}:A new version is active in words.|Version " + version + " has been set to active in db words.|#sequins:birds,sequins_db:words"
		if said := a.said(event); said != 1 {
			t.Errorf("%d events of version %s", said, version)
		}
	}
	if names := a.unknown(); names != nil {
		t.Errorf("the first sequins did not send %q", names)
	}
}

// A node does not miss its agent.
func TestDatadogAway(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "words", "1", 20, 1000, numbered("1"))
	c.Sections = fmt.Sprintf("[datadog]\nurl = %q\n", process.FreeAddr(t))
	n := process.Serve(t, c, "words", "1")
	n.Expect(t, "/words/key-000001", 200, "1", "1/1")
	if code := n.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
