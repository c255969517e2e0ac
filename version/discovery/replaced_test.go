package discovery

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/content"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
)

// The files of the served version are replaced by faulty ones. They settle once: a listing while they load, and their failure, do not begin that anew,
// so that they are not withdrawn and loaded again and again.
func TestReplacedSettlesOnce(t *testing.T) {
	const settle = time.Minute
	dir := t.TempDir()
	expect.NoError(t, os.MkdirAll(filepath.Join(dir, "db", "1"), 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "db", "1", "part-00000"), []byte("x"), 0o600))
	src, err := local.New(dir)
	expect.NoError(t, err)
	now, served := content.Input{Name: "1", Hash: content.Sum("now")}, content.Input{Name: "1", Hash: content.Sum("served")}
	f := Finder{Source: src, DB: "db", Log: slog.New(slog.DiscardHandler), Settle: settle,
		Input: func(string, source.Listing) content.Input { return now },
		Begun: func(content.Input) bool { return false }}
	synctest.Test(t, func(t *testing.T) {
		q := Question{Served: served, Active: true, Compare: map[content.Input]store.Manifest{served: {}}}
		for i, step := range []struct {
			state  State
			listed int
		}{{State{}, 0}, {State{}, 1}, {State{Settled: true, Loading: true}, 1}, {State{Failed: true}, 1}} {
			q.States = map[content.Input]State{now: step.state}
			found, err := f.Find(t.Context(), q)
			expect.NoError(t, err)
			if len(found.Inputs) != step.listed {
				t.Errorf("step %d: listed %v, unfinished %q", i, found.Inputs, found.Unfinished)
			}
			q.Last = found
			time.Sleep(settle)
		}
	})
}
