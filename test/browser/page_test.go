//go:build integration

package browser

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// newSource makes an empty source, and the configuration of a node that reads it.
func newSource(t *testing.T) (source string, c process.Config) {
	t.Helper()
	source = filepath.Join(t.TempDir(), "source")
	expect.NoError(t, os.Mkdir(source, 0o755))
	return source, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Extra: `refresh_period = "200ms"`}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "2026-01-30", 8, 20000)
	publish(t, source, "users", "2026-01-31T04", 200, 3000) // more partitions than a row of the map has cells
	n := process.Serve(t, c, "words", "2026-01-30")
	n.WaitCurrent(t, "users", "2026-01-31T04")
	script(t, "healthy", n.Addr, map[string]func(){
		"publish": func() { publish(t, source, "words", "2026-01-31", 8, 21000) },
		"kill":    n.Kill,
	})
}

func TestLoading(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "2026-01-30", 4, 100)
	n := process.Serve(t, c, "words", "2026-01-30")
	n.Kill()
	publish(t, source, "words", "2026-01-31", 16, 60000)
	c.Extra += "\nthrottle_loads = \"1ms\"\n"
	n = process.Serve(t, c, "words", "2026-01-30")
	n.WaitFor(t, "the load has begun", func() bool { return n.Health(t)["words"]["2026-01-31"].State == "BUILDING" })
	script(t, "loading", n.Addr, nil)
}

// Names in the source are text on the page, also if they contain HTML.
func TestHostile(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "1", 4, 100)
	dir := filepath.Join(source, "words", "2")
	expect.NoError(t, errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, `part-<img src=x onerror="document.title='owned'">`), []byte("SEQ\x06no"), 0o644)))
	c.Extra = "" // a refresh would try the second version again, and the page show that it loads
	n := process.Serve(t, c, "words", "1")
	n.WaitFor(t, "the second version has failed", func() bool { return n.Health(t)["words"]["2"].State == "ERROR" })
	script(t, "hostile", n.Addr, nil)
}

// Where a token is needed, the page has nothing on it until there is one.
func TestShut(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "2026-01-30", 2, 100)
	publish(t, source, "users", "2026-01-30", 2, 100)
	tokens := filepath.Join(t.TempDir(), "tokens")
	write := func(ops string) {
		expect.NoError(t, os.WriteFile(tokens, []byte("web the-token-of-the-web *\nops "+ops+" words pages\n"), 0o600))
	}
	write("the-token-of-the-operators")
	c.Sections = fmt.Sprintf("[auth]\ntokens_file = %q\n", tokens)
	n := process.Start(t, c)
	n.WaitFor(t, "it is ready", func() bool { return n.Get(t, "/readyz").Code == 200 })
	script(t, "shut", n.Addr, map[string]func(){"take out": func() { write("the-next-token-of-the-operators") }})
}

func TestRefusedReload(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "1", 4, 100)
	n := process.Serve(t, c, "words", "1")
	conf, err := os.ReadFile(n.Conf)
	expect.NoError(t, err)
	reload := func(prefix string) func() {
		return func() {
			expect.NoError(t, os.WriteFile(n.Conf, []byte(prefix+string(conf)), 0o644))
			n.Signal(t, syscall.SIGHUP)
		}
	}
	script(t, "refused", n.Addr, map[string]func(){"refuse": reload("nonsense = 1\n"), "accept": reload("")})
}

func TestDegraded(t *testing.T) {
	t.Parallel()
	source, c := newSource(t)
	publish(t, source, "words", "2026-01-30", 24, 12000)
	servers := harness.Start(t).Do(t, "zk start n=1 tick=2000")["connect"]
	var nodes []*process.Node
	for i := range 3 {
		c.Store = filepath.Join(t.TempDir(), "store")
		c.Sections = fmt.Sprintf(`[sharding]
enabled = true
advertised_hostname = "127.0.0.1"
shard_id = "shard%d"
zone = "zone-%c"
replication = 2
min_nodes = 3
time_to_converge = "500ms"
proxy_timeout = "20s"
[zk]
servers = [%q]
session_timeout = "15s"
`, i+1, 'a'+i, servers)
		nodes = append(nodes, process.Start(t, c))
	}
	for _, n := range nodes {
		n.WaitCurrent(t, "words", "2026-01-30")
	}
	script(t, "degraded", nodes[0].Addr, map[string]func(){"kill": nodes[2].Kill})
}
