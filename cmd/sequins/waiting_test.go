package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/ports"
)

// A node that waits for ZooKeeper says so to load balancers, people and the log, and is alive.
func TestWaitingForZooKeeper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "sequins.conf")
	writeFile(t, conf, "source = \""+demoSource(t, dir)+"\"\nlocal_store = \""+filepath.Join(dir, "store")+"\"\n[sharding]\nenabled = true\nadvertised_hostname = \"127.0.0.1\"\n"+
		"[zk]\nservers = [\"127.0.0.1:1\"]\n")
	addr, err := ports.Free()
	expect.NoError(t, err)
	cmd := command(t, "--bind", addr, "--config", conf)
	s := &served{process: start(t, cmd, cmd.StderrPipe), base: "http://" + addr}
	s.waitFor(`level=WARN msg="joining the cluster; no requests for keys are answered before" .*waiting_for="ZooKeeper \(`)
	s.await("/readyz", "the reason", func(r *http.Response, body string) bool {
		return r.StatusCode == 503 && strings.HasPrefix(body, "not ready: it waits for ZooKeeper (connection: ") && strings.Contains(body, "connection refused") && strings.Contains(body, " (for ")
	})
	if r, body := s.get("/livez"); r.StatusCode != 200 {
		t.Errorf("/livez: %s %s", r.Status, body)
	}
	r := sequins(t, "status", "--server", s.base)
	if r.code != exitUnhealthy || !strings.Contains(r.stdout, "\nNot ready: it waits for ZooKeeper (") || !strings.Contains(r.stdout, "\nWaiting for ZooKeeper (") {
		t.Errorf("exit code %d, %s", r.code, r.stdout)
	}
	if _, body := s.get("/"); !strings.Contains(body, `"waiting":[{"for":"zookeeper","what":"ZooKeeper (`) || !strings.Contains(body, `"blocks":true`) {
		t.Errorf("the status is %s", body)
	}
}
