package node

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sequins/blocks"
	"sequins/load"
)

var fruit = []string{"apple", "banana", "cherry", "date", "elderberry", "fig", "grape", "honeydew"}

func TestServesWhatIsInTheSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	f.put("nuts", "2026-01-31", 1, "almond")
	r := f.run()
	r.serves("fruit", "1")
	r.serves("nuts", "2026-01-31")
	for _, key := range fruit {
		want := answer{http.StatusOK, key + " of 1", "1"}
		if got := r.get("/fruit/" + key); got != want {
			t.Errorf("%s: %+v, want %+v", key, got, want)
		}
	}
	if got := r.get("/fruit/almond"); got.status != http.StatusNotFound || got.version != "1" {
		t.Errorf("an absent key: %+v", got)
	}
	if got := r.get("/vegetables/leek"); got.status != http.StatusNotFound || got.version != "" {
		t.Errorf("an unknown database: %+v", got)
	}
	r.eventually("the loads have ended", func() bool { return f.log.count("load finished") == 2 }) // a moment after they have published
	for line, n := range map[string]int{"version found": 2, "load started": 2, "version active": 2} {
		if got := f.log.count(line); got != n {
			t.Errorf("the log has %q %d times, want %d", line, got, n)
		}
	}
}

// TestUpgrades replaces a version under readers without pause, by more and by fewer partitions.
func TestUpgrades(t *testing.T) {
	const upgrades, readers = 5, 2
	f := newFixture(t)
	f.put("fruit", "00", 2, fruit...)
	r := f.run()
	r.serves("fruit", "00")

	var stop atomic.Bool
	var wg sync.WaitGroup
	var requests atomic.Int64
	for range readers {
		wg.Go(func() {
			last := ""
			for i := 0; !stop.Load(); i++ {
				key := fruit[i%len(fruit)]
				a, err := r.try("/fruit/" + key)
				switch {
				case err != nil:
					t.Errorf("request: %v", err)
				case a.status != http.StatusOK || a.body != key+" of "+a.version:
					t.Errorf("%s: %+v", key, a)
				case a.version < last:
					t.Errorf("%s after %s", a.version, last)
				default:
					last = a.version
					requests.Add(1)
					continue
				}
				return
			}
		})
	}
	for i := 1; i <= upgrades; i++ {
		v := fmt.Sprintf("%02d", i)
		f.put("fruit", v, 1+i%4, fruit...)
		r.Refresh()
		r.serves("fruit", v)
		before := requests.Load()
		r.eventually("requests go on", func() bool { return requests.Load() > before+readers || t.Failed() })
	}
	stop.Store(true)
	wg.Wait()
	r.eventually("old versions are gone", func() bool {
		return f.onDisk("fruit") == fmt.Sprintf("%02d", upgrades) && len(r.Status().DBs["fruit"].Versions) == 1
	})
	if got := f.log.count("version removed"); got != upgrades {
		t.Errorf("the log speaks of %d removed versions", got)
	}
}

func TestForwardOnly(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "5", 1, fruit...)
	r := f.run()
	r.serves("fruit", "5")
	f.put("fruit", "4", 1, fruit...)
	f.remove("fruit", "5")
	f.put("nuts", "1", 1, "almond")
	r.Refresh()
	r.serves("nuts", "1") // so the refresh has been heard of
	r.update("fruit", "6", 1, fruit...)
	if n := f.log.count("version=4"); n != 0 {
		t.Errorf("%d lines of the log are about an older version", n)
	}
}

// TestSupersededWhileLoading: a load that has begun is not given up for a newer version, unless the source does not have its version any more.
func TestSupersededWhileLoading(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")

	g, open := f.source.shut()
	f.put("fruit", "2", 2, fruit...)
	r.Refresh()
	if file := <-g.waiting; !strings.HasPrefix(file, "fruit/2/") {
		t.Fatalf("%s is being read", file)
	}
	if s := r.onNode("fruit", "2"); s.State != "BUILDING" || s.Current {
		t.Errorf("a version that loads: %+v", s)
	}
	f.put("fruit", "3", 2, fruit...)
	r.Refresh()
	r.eventually("3 is found", func() bool {
		_, found := r.Status().DBs["fruit"].Versions["3"]
		return found
	})
	if s := r.onNode("fruit", "2"); s.State != "BUILDING" || f.log.count("load cancelled", "version=2") != 0 {
		t.Errorf("a version that loads while there is a newer one: %+v", s)
	}
	f.remove("fruit", "2")
	r.Refresh()
	r.eventually("2 is cancelled and gone", func() bool {
		_, found := r.Status().DBs["fruit"].Versions["2"]
		return !found && !strings.Contains(f.onDisk("fruit"), "2") && f.log.count("load cancelled", "version=2") == 1
	})
	if got := r.get("/fruit/fig"); got.body != "fig of 1" {
		t.Errorf("meanwhile: %+v", got)
	}
	open()
	r.serves("fruit", "3")
	r.eventually("1 is gone", func() bool { return f.onDisk("fruit") == "3" })
}

func TestErrorThenRepaired(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	for range 2 { // it is retried when it has changed
		f.damage("fruit", "2", "part-r-00001")
		failures := f.log.count("version failed", "version=2")
		r.Refresh()
		r.eventually("2 is found to be bad", func() bool { return f.log.count("version failed", "version=2") > failures })
	}
	r.eventually("the status has it", func() bool {
		s := r.onNode("fruit", "2")
		return s.State == "ERROR" && strings.Contains(s.Error, "part-r-00001") && strings.HasPrefix(s.Detail, "it has failed 1 time, and is tried again at ")
	})
	if n := r.counted("sequins_load_failures_total", "fruit"); n != 2 {
		t.Errorf("%v failed loads", n)
	}
	if got := r.get("/fruit/fig"); got.body != "fig of 1" {
		t.Errorf("meanwhile: %+v", got)
	}
	f.remove("fruit", "2")
	f.put("fruit", "2", 3, fruit...) // with other files than before, and partly loaded by the old plan
	r.Refresh()
	r.serves("fruit", "2")
	r.eventually("it is repaired in the status, too", func() bool {
		s := r.onNode("fruit", "2")
		return s.State == "ACTIVE" && s.Error == "" && len(s.Partitions) == 3
	})
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 2" {
			t.Errorf("%s: %+v", key, got)
		}
	}
	log := f.log.String()
	for _, version := range []string{"1", "2"} {
		if loaded, active := strings.Index(log, `msg="load finished" db=fruit version=`+version), strings.Index(log, `msg="version active" db=fruit version=`+version); loaded < 0 || loaded > active {
			t.Errorf("version %s is active before it is loaded", version)
		}
	}
}

// TestErrorWithNothingToServe has the next older version loaded meanwhile.
func TestErrorWithNothingToServe(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("fruit", "2", 1, fruit...)
	f.put("fruit", "3", 1, fruit...)
	f.put("fruit", "4", 1, fruit...)
	f.damage("fruit", "4", "part-r-00000")
	f.damage("fruit", "3", "part-r-00000")
	r := f.run()
	r.serves("fruit", "2")
	r.eventually("the newest is in ERROR", func() bool { return r.onNode("fruit", "4").State == "ERROR" })
	f.remove("fruit", "4")
	r.update("fruit", "4", 1, fruit...)
	r.eventually("all others are gone", func() bool { return f.onDisk("fruit") == "4" })
}

func TestVersionWithoutSuccessDoesNotExist(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("fruit", "2", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	f.remove("fruit", "2", "_SUCCESS")
	f.remove("nuts", "1", "_SUCCESS")
	r := f.run(func(o *Options) {
		o.each(func(d *DB) { d.Load = load.Options{RequireSuccess: true} })
	})
	r.serves("fruit", "1")
	s := r.Status()
	if len(s.DBs["fruit"].Versions) != 1 || len(s.DBs["nuts"].Versions) != 0 {
		t.Errorf("versions: %v", s.DBs)
	}
	if got := s.DBs["nuts"].Error; !strings.Contains(got, "1: there is no _SUCCESS") {
		t.Errorf("a db without a version says %q", got)
	}
	if ok, reason := r.Ready(""); !ok {
		t.Errorf("not ready: %s", reason)
	}
	f.remove("fruit", "2")
	r.update("fruit", "2", 1, fruit...)
}

func TestDatabasesComeAndGo(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "1", 1, "almond")
	f.put("healthz", "1", 1, "ok")
	r := f.run(removeSoon)
	r.serves("fruit", "1")
	r.serves("nuts", "1")
	if w := r.Status().Warnings; len(w) != 1 || !strings.Contains(w[0], `"healthz"`) || f.log.count("healthz") != 1 {
		t.Errorf("a directory named healthz: warnings %q, %d lines", w, f.log.count("healthz"))
	}
	f.remove("nuts")
	r.eventually("nuts is gone", func() bool {
		r.Refresh()
		_, found := r.Status().DBs["nuts"]
		return !found && r.Set([]byte("nuts")) == nil && f.onDisk("nuts") == ""
	})
	if got := r.get("/nuts/almond"); got.status != http.StatusNotFound || got.version != "" {
		t.Errorf("a database that is gone: %+v", got)
	}
	if got := r.get("/fruit/fig"); got.status != http.StatusOK {
		t.Errorf("the other one: %+v", got)
	}
	f.put("nuts", "0", 1, "walnut") // an older version than it had in its former life
	f.put("seeds", "1", 1, "poppy")
	r.eventually("nuts is there again", func() bool {
		r.Refresh()
		s := r.Set([]byte("nuts"))
		return s != nil && s.Current().Name == "0"
	})
	r.serves("seeds", "1")
	if f.log.count("healthz") != 1 {
		t.Error("healthz is reported again and again")
	}
}

// TestDatabaseReturnsBeforeItIsGone: it is in the source again while somebody
// still reads from its former life.
func TestDatabaseReturnsBeforeItIsGone(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	f.put("nuts", "2", 1, "almond")
	r := f.run(removeSoon)
	r.serves("fruit", "1")
	r.serves("nuts", "2")
	h := r.Set([]byte("nuts")).Acquire()
	f.remove("nuts")
	r.eventually("nuts is gone", func() bool {
		r.Refresh()
		return r.Set([]byte("nuts")) == nil
	})
	f.put("nuts", "1", 1, "almond")
	f.put("seeds", "1", 1, "poppy")
	r.Refresh()
	r.serves("seeds", "1") // so the refresh has been heard of
	if r.Set([]byte("nuts")) != nil {
		t.Error("two lives at a time")
	}
	if _, found, err := h.Get(0, []byte("almond"), new(blocks.Scratch)); !found || err != nil {
		t.Errorf("the reader gets %v, %v", found, err)
	}
	h.Release()
	r.serves("nuts", "1") // without another refresh
}

func TestMaxParallelLoads(t *testing.T) {
	f := newFixture(t)
	g, open := f.source.shut()
	for i := range 5 {
		f.put(fmt.Sprintf("db%d", i), "1", 1, fruit...)
	}
	r := f.run(func(o *Options) { o.MaxParallelLoads = 2 })
	<-g.waiting
	count := func(detail ...string) (n int) {
		for _, db := range r.Status().DBs {
			for _, v := range db.Versions {
				if slices.Contains(detail, v.Nodes["localhost"].Detail) {
					n++
				}
			}
		}
		return n
	}
	r.eventually("two load", func() bool { return count("looking at the files", "loading") == 2 })
	if n := count("waiting for other databases' loads"); n != 3 {
		t.Errorf("%d wait", n)
	}
	open()
	for i := range 5 {
		r.serves(fmt.Sprintf("db%d", i), "1")
	}
}
