//go:build integration

package deep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"sequins/test/harness"
	"sequins/test/process"
)

// tree lists all znodes but ZooKeeper's own, with their versions.
func tree(t *testing.T, servers []string) (all []string) {
	t.Helper()
	conn, events, err := zk.Connect(servers, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	if err := conn.AddAuth("digest", []byte("ana:her password")); err != nil {
		t.Fatal(err)
	}
	var walk func(path string)
	walk = func(path string) {
		children, stat, err := conn.Children(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, fmt.Sprintf("%s of %d", path, stat.Ctime))
		for _, name := range children {
			if below := strings.TrimSuffix(path, "/") + "/" + name; below != "/zookeeper" {
				walk(below)
			}
		}
	}
	walk("/")
	slices.Sort(all)
	return all
}

func sharding(name, servers, more string) string {
	return fmt.Sprintf("[sharding]\nenabled = true\ncluster_name = %q\nadvertised_hostname = \"127.0.0.1\"\n%s\n[zk]\nservers = [\"%s\"]\n", name, more, strings.ReplaceAll(servers, ",", `", "`))
}

// TestZooKeeper: it is found out whether znodes can be created, and nothing is left behind.
func TestZooKeeper(t *testing.T) {
	h := harness.Start(t)
	servers := h.Do(t, "zk start n=3")["connect"]
	list := strings.Split(servers, ",")
	source := t.TempDir()
	writeVersion(t, source, 10)
	before := tree(t, list)
	check(t, configuration(t, source, sharding("fresh", servers, "")), 0).expects("zk", "ok", "this node may create /fresh/v1")
	if after := tree(t, list); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}

	// A cluster of its own, whose znodes only ana may use.
	n := process.Start(t, process.Config{Source: source, Store: t.TempDir() + "/store",
		Sections: sharding("taken", servers, "replication = 1\ntime_to_converge = \"100ms\"") + "auth = \"ana:her password\"\nsession_timeout = \"8s\"\n"})
	n.WaitCurrent(t, "db", "1")
	before = tree(t, list)
	r := check(t, configuration(t, source, sharding("taken", servers, "")+"auth = \"ana:her password\"\n"), 0)
	r.expects("zk", "ok", "this node may create znodes below /taken/v1; nodes there: 1")
	if contains(r.all, "her password") {
		t.Errorf("the password is shown:\n%s", r.all)
	}
	for _, auth := range []string{"auth = \"ana:not hers\"\n", ""} {
		check(t, configuration(t, source, sharding("taken", servers, "")+auth), 0).expects("zk", "failed", "not authenticated")
	}
	if after := tree(t, list); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
	n.Kill()

	h.Do(t, "zk kill i=0")
	check(t, configuration(t, source, sharding("fresh", servers, "")), 0).expects("zk", "ok", "this node may create /fresh/v1")
	h.Do(t, "zk kill i=1")
	h.Do(t, "zk kill i=2")
	r = check(t, configuration(t, source, sharding("fresh", servers, "")), 0)
	r.expects("zk", "failed", "connection refused")
}
