package node

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOtherPlanIsHealed: this node has looked at a version while its job was writing, and another node later. This one
// plans the version anew as soon as it lists the source, and only if the files have changed, whoever the other is.
func TestOtherPlanIsHealed(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, stop := f.follow(func(o *Options) {
			o.Cluster, o.Settle, o.RefreshPeriod, o.AutoSuccess, o.MinReplication = c, 3*time.Second, time.Minute, always, 2
		})
		defer stop()
		time.Sleep(10 * time.Second)
		first := c.plan("1")
		set := n.Set([]byte("fruit"))
		if first == "" || set.Current() != "" || len(c.has("1")) != 1 {
			t.Fatalf("planned %q, current is %q, advertised %v", first, set.Current(), c.has("1"))
		}
		f.putFile(filepath.Join(f.root, "fruit/1/part-r-00001"), "1", func(string) bool { return true }, []string{"plum"})
		time.Sleep(2 * time.Minute)
		if c.plan("1") != first {
			t.Fatal("nobody holds it by another plan, and it is planned anew")
		}
		c.other("1", "another")
		time.Sleep(time.Minute + 5*time.Second) // a refresh, and settle
		if c.plan("1") == first || len(c.has("1")) != 2 || set.Current() != "" {
			t.Fatalf("planned %q, at first %q; advertised %v, current is %q", c.plan("1"), first, c.has("1"), set.Current())
		}
		c.other("1", "")
		c.hold("1", 0, 1)
		time.Sleep(time.Second)
		if set.Current() != "1" || f.log.count("load started") != 2 {
			t.Errorf("current is %q after %d loads", set.Current(), f.log.count("load started"))
		}
		c.other("1", "an older one") // of a node that has yet to look again
		time.Sleep(5 * time.Minute)
		if f.log.count("load started") != 2 || len(n.Status().Problems) > 0 {
			t.Errorf("this node has the files of the source: %d loads, %q", f.log.count("load started"), n.Status().Problems)
		}
	})
}

// TestActiveVersionThatDiverged: what clients are answered from does not change. It is reported until there is a newer
// version, or no other node differs.
func TestActiveVersionThatDiverged(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, stop := f.follow(func(o *Options) {
			o.Cluster, o.Settle, o.RefreshPeriod, o.AutoSuccess = c, 3*time.Second, time.Minute, always
		})
		defer stop()
		time.Sleep(10 * time.Second)
		first := c.plan("1")
		f.putFile(filepath.Join(f.root, "fruit/1/part-r-00001"), "1", func(string) bool { return true }, []string{"plum"})
		c.other("1", "another")
		time.Sleep(5 * time.Minute)
		s := n.Status()
		problems, v := strings.Join(s.Problems, "\n"), s.DBs["fruit"].Versions["1"].Nodes["localhost"]
		if c.plan("1") != first || !strings.Contains(problems, "version 1 of fruit") || !v.Diverged || v.Error != problems {
			t.Errorf("plan %q, at first %q; problems %q, %+v", c.plan("1"), first, problems, v)
		}
		if n := f.log.count("level=ERROR", "version 1 of fruit"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		f.put("fruit", "2", 1, "fig")
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]string(nil), n.Status().Problems); n.Set([]byte("fruit")).Current() != "2" || diff != "" {
			t.Errorf("with a newer version: %s", diff)
		}
	})
}

// TestPlanThatNobodyShares: a node that has lost its disk plans a version by other fields than the other nodes. It says so
// until there is a node with its plan.
func TestPlanThatNobodyShares(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, "fig")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, stop := f.follow(func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
		defer stop()
		time.Sleep(10 * time.Second)
		c.other("1", "another")
		time.Sleep(5 * time.Minute)
		s := n.Status()
		problems, v := strings.Join(s.Problems, "\n"), s.DBs["fruit"].Versions["1"].Nodes["localhost"]
		if !strings.Contains(problems, "other files or fields") || v.Error != problems || v.Diverged {
			t.Errorf("problems %q, %+v", problems, v)
		}
		if n := f.log.count("level=ERROR", "other nodes have planned version 1 of fruit"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		c.hold("1", 0)
		time.Sleep(2 * time.Minute)
		if got := n.Status().Problems; len(got) > 0 {
			t.Errorf("another node shares the plan: %q", got)
		}
	})
}
