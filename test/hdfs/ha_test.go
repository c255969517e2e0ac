//go:build integration

package hdfs

import (
	"testing"
	"time"

	"sequins/source"
	"sequins/source/hdfs"
)

// Of two namenodes, the active one is killed in the middle of a load; then they fail over back and forth within the
// five seconds for which the library would avoid both.
func TestFailover(t *testing.T) {
	c := start(t, "ha dn=2 rep=2")
	set := dataset{files: 60, records: 170, size: 1000}
	d := c.newDir()
	set.write(t, c, d.root+"/db/1")
	open := func() *hdfs.Source {
		return c.open(t, d.root, func(o *hdfs.Options) { o.URL, o.ConfigDir = "hdfs://ns1"+d.root, c.conf })
	}
	t.Run("BackWithinFiveSeconds", func(t *testing.T) {
		l := set.load(t, open(), 2<<20)
		for i, part := range []float64{0.1, 0.3, 0.5} {
			l.reach(t, part)
			c.Do(t, []string{"dfs failover to=1", "dfs failover to=0"}[i%2])
		}
		l.finish(t)
		c.Do(t, "dfs failover to=0")
	})
	t.Run("Killed", func(t *testing.T) {
		s := open()
		l := set.load(t, s, 2<<20)
		l.reach(t, 0.1)
		c.Do(t, "dfs killnn i=0")
		killed := time.Now()
		c.Do(t, "dfs failover to=1")
		l.reach(t, 0.4)
		c.Do(t, "dfs restartnn i=0")
		c.Do(t, "dfs failover to=0")
		t.Logf("back after %v", time.Since(killed))
		l.finish(t)

		// Nobody is active for a while: who asks waits for it.
		c.Do(t, "dfs killnn i=0")
		restarted := make(chan error, 1)
		time.AfterFunc(time.Second, func() {
			_, err := c.Try("dfs failover to=1")
			restarted <- err
		})
		if dbs, err := source.Databases(t.Context(), s); err != nil || len(dbs) != 1 {
			t.Errorf("while nobody was active: %v, %v", dbs, err)
		}
		if err := <-restarted; err != nil {
			t.Error(err)
		}
	})
}
