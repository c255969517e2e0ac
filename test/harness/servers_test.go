//go:build integration

package harness

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The servers for tests of sources and clusters start, answer, and can be killed and restarted.
func TestServers(t *testing.T) {
	t.Run("zookeeper", func(t *testing.T) {
		h := Start(t)
		addr := h.Do(t, "zk start")["connect"]
		dial(t, addr)
		h.Do(t, "zk kill i=0")
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			t.Error("a killed server answers")
		}
		h.Do(t, "zk restart i=0")
		dial(t, addr)
	})
	t.Run("hdfs", func(t *testing.T) {
		h := Start(t)
		r := h.Do(t, "dfs start")
		dial(t, r["nn"])
		checkConf(t, r["conf"], "hdfs://")
		job := h.Do(t, "job out=hdfs://"+r["nn"]+"/db/1 records=500 reducers=2")
		if job["files"] != "2" {
			t.Errorf("job: %v", job)
		}
		h.Do(t, "dfs put src="+filepath.Join(r["conf"], "core-site.xml")+" dst=/core-site.xml")
		h.Do(t, "dfs write=/big bytes=3000000")
		h.Do(t, "dfs killdn i=0")
		h.Do(t, "dfs restartdn")
		h.Do(t, "dfs killnn i=0")
		h.Do(t, "dfs restartnn i=0")
	})
	t.Run("hdfs with two namenodes", func(t *testing.T) {
		h := Start(t)
		r := h.Do(t, "dfs start ha")
		checkConf(t, r["conf"], "hdfs://ns1")
		h.Do(t, "dfs write=/a bytes=10")
		h.Do(t, "dfs failover to=1")
		h.Do(t, "dfs write=/b bytes=10")
	})
	t.Run("kerberos", func(t *testing.T) {
		h := Start(t)
		k := h.Do(t, "kdc start")
		dial(t, "127.0.0.1:"+k["port"])
		if _, err := os.Stat(k["keytab"]); err != nil {
			t.Error(err)
		}
		r := h.Do(t, "dfs start secure protection=privacy")
		h.Do(t, "job out=hdfs://"+strings.Replace(r["nn"], "127.0.0.1", "localhost", 1)+"/db/1 records=10 reducers=1")
	})
}

func dial(t *testing.T, addr string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func checkConf(t *testing.T, dir, fs string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "core-site.xml"))
	if err != nil || !strings.Contains(string(b), "<value>"+fs) {
		t.Errorf("core-site.xml: %v\n%s", err, b)
	}
	if _, err := os.Stat(filepath.Join(dir, "hdfs-site.xml")); err != nil {
		t.Error(err)
	}
}
