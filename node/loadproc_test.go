package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sequins/load"
	"sequins/load/loadproc"
	"sequins/test/expect"
)

// children returns the processes that this one has started and not waited for.
func children(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	expect.NoError(t, err)
	for _, f := range files {
		list, err := os.ReadFile(f)
		if err != nil {
			continue // the thread is gone
		}
		for _, word := range strings.Fields(string(list)) {
			pid, err := strconv.Atoi(word)
			expect.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// keepAsking asks for a key until the result is called, and has the test fail at a wrong answer.
func (r *running) keepAsking(path, want string) (stop func()) {
	ended := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if a, err := r.try(path); err != nil || a.body != want {
				r.f.t.Errorf("%s: %+v, %v", path, a, err)
				return
			}
		}
	})
	return func() { close(ended); asking.Wait() }
}

// TestLoadIsKilled kills the process of a load: the version is ERROR and says how the process has ended, what
// is served has not noticed, and the next attempt loads it.
func TestLoadIsKilled(t *testing.T) {
	f := newFixture(t)
	f.put("nuts", "1", 1, fruit...)
	r := f.run()
	r.serves("nuts", "1")
	stop := r.keepAsking("/nuts/fig", "fig of 1")

	g, open := f.source.shut()
	f.put("fruit", "1", 2, fruit...)
	r.Refresh()
	<-g.waiting
	var pids []int
	r.eventually("the load of nuts has ended", func() bool {
		pids = children(t)
		return len(pids) == 1
	})
	expect.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	r.eventually("the version has failed", func() bool {
		s := r.onNode("fruit", "1")
		return s.State == "ERROR" && strings.Contains(s.Error, "signal: killed")
	})
	open()
	r.serves("fruit", "1") // without a refresh
	stop()
	r.eventually("no process is left", func() bool { return len(children(t)) == 0 })
}

// TestLoadAfterADeath: a load whose process has died, maybe for want of memory, is tried again with one worker.
func TestLoadAfterADeath(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	self, err := os.Executable()
	expect.NoError(t, err)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(func(o *Options) {
		o.Loads = &loadproc.Launcher{Source: f.root, Program: func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "sh", "-c", `cd "$0" && if [ ! -e first ]; then head -n 1 > first; exit 3; fi; tee second | "$1"`, dir, self)
			cmd.Env = append(os.Environ(), beLoader+"=1", "GORACE=atexit_sleep_ms=0")
			return cmd
		}}
	})
	r.serves("fruit", "1")
	for name, want := range map[string]string{"first": `"Workers":0`, "second": `"Workers":1`} {
		job, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(job), want) {
			t.Errorf("%s job: %s, %v; want %s", name, job, err, want)
		}
	}
}

// bomb is a Parquet file of 21 bytes whose footer asks for 200 GB.
const bomb = "50415231" + "1502" + "19FCFFFFFFFF07" + "09000000" + "50415231"

// TestBomb: a file that makes its reader take more memory than there is ends its load and nothing else, at each
// attempt.
func TestBomb(t *testing.T) {
	f := newFixture(t)
	f.put("nuts", "1", 1, fruit...)
	r := f.run(f.verbose, func(o *Options) {
		o.LoadMemoryLimit = 512 << 20
		o.each(func(d *DB) { d.Load = load.Options{Fields: load.Fields{Key: "key"}} })
	})
	r.serves("nuts", "1")
	stop := r.keepAsking("/nuts/fig", "fig of 1")
	data, err := hex.DecodeString(bomb)
	expect.NoError(t, err)
	dir := filepath.Join(f.root, "fruit", "1")
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "part-00000.parquet"), data, 0o644))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644))
	r.Refresh()
	r.eventually("the version has failed", func() bool { return f.log.count("version failed", "db=fruit") > 0 })
	r.eventually("the status says so", func() bool { return r.onNode("fruit", "1").State == "ERROR" })
	r.Apply(*r.reloadable.Load())
	r.eventually("the version has failed again", func() bool {
		if s := r.onNode("fruit", "1"); s.State != "ERROR" || s.Error == "" {
			t.Fatalf("meanwhile it is shown as %+v", s)
		}
		return f.log.count("version failed again", "db=fruit") > 0
	})
	stop()
}

// TestChangesWhileLoading: a version whose files are replaced, or become more, while they are loaded is not
// served as it was planned, but planned anew, without a refresh.
func TestChangesWhileLoading(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"overwritten": func(f *fixture) {
			f.putFile("fruit/1/part-r-00001", "2", fruit...)
		},
		"joined": func(f *fixture) {
			f.putFile("fruit/1/part-r-00002", "2", fruit...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.t = t
			f.source.planned.Store(true)
			f.put("fruit", "1", 2, fruit...)
			r := f.run(func(o *Options) {
				o.each(func(d *DB) { d.Load = load.Options{Partitioner: "string"} })
			})
			r.eventually("the version is planned", func() bool { return f.log.count("load started") == 1 })
			change(f)
			f.source.planned.Store(false)
			r.serves("fruit", "1")
			for _, key := range fruit {
				if a := r.get("/fruit/" + key); a.body != fmt.Sprintf("%s of 2", key) {
					t.Errorf("%s: %+v", key, a)
				}
			}
			if n := f.log.count("load started"); n != 2 {
				t.Errorf("%d loads", n)
			}
		})
	}
}
