package node

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/version"
	"sequins/version/gate"
)

// exactly asks for a key of a version by its name, as a client does.
func (r *running) exactly(version, path string) int {
	r.f.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.url+path, nil)
	expect.NoError(r.f.t, err)
	req.Header.Set("X-Sequins-Version", version)
	resp, err := r.client.Do(req)
	expect.NoError(r.f.t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	expect.NoError(r.f.t, err)
	return resp.StatusCode
}

// A node that restarts lacks a partition of the former version, as it does while another node is down whose partitions it
// owns meanwhile. The version is kept all the same, with and without rules, and also if the rules are new.
func TestKeptOverRestarts(t *testing.T) {
	none, some := gate.Rules{}, gate.Rules{MinRecords: 1}
	for name, rules := range map[string][2]gate.Rules{"no rules": {none, none}, "rules": {some, some}, "new rules": {none, some}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 2, fruit...)
			r := f.run(ruled(rules[0]), keeping(2))
			r.serves("fruit", "1")
			r.update("fruit", "2", 2, fruit...)
			r.stop()
			expect.NoError(t, os.Remove(filepath.Join(f.dir("fruit", "1"), "00001.block")))

			r = f.run(ruled(rules[1]), keeping(2))
			r.serves("fruit", "2")
			r.eventually("the source is read", func() bool { return (*r.follower.catalog.Load())["fruit"].view.Load().facts.Source == version.Known })
			if got := r.onNode("fruit", "1"); got.State != "KEPT" || len(got.Partitions) != 1 {
				t.Errorf("the former version is %+v", got)
			}
			found := 0
			for _, key := range fruit {
				if r.exactly("1", "/fruit/"+key) == http.StatusOK {
					found++
				}
			}
			if found == 0 || found == len(fruit) {
				t.Errorf("%d of %d keys of the former version can be read", found, len(fruit))
			}
		})
	}
}

// Clients cannot read a held version by its name, also when a newer one is served and it is not removed yet. What was served
// before can be read.
func TestHeldIsNotReadByName(t *testing.T) {
	_, r := goodAndBad(t, ruled(gate.Rules{MaxShrink: 0.5}), func(o *Options) {
		o.Cluster, o.VersionRemoveTimeout = newCluster(), time.Hour
	})
	r.update("fruit", "3", 2, numbered("k", 100)...)
	r.eventually("2 lingers", func() bool { return r.onNode("fruit", "2").State == "REMOVING" })
	for version, want := range map[string]int{"1": http.StatusOK, "2": http.StatusPreconditionFailed, "3": http.StatusOK} {
		if got := r.exactly(version, "/fruit/k00005"); got != want {
			t.Errorf("version %s: %d, want %d", version, got, want)
		}
	}
}
