package discovery

import (
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/content"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
)

// The files of the served version are replaced by faulty ones. They settle once: a listing while they load, and their failure, do not begin that anew,
// so that they are not withdrawn and loaded again and again.
func TestReplacedSettlesOnce(t *testing.T) {
	const settle = time.Minute
	src := sourceOf(t, "1/part-00000")
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

// The files of the served version are replaced. Also without a refresh_period they are looked at again, when a job still writes them, and
// when they cannot be read.
func TestReplacedIsLookedAtAgain(t *testing.T) {
	src := sourceOf(t, "3/part-00000", "3/_temporary/part-00001")
	served := content.Input{Name: "3", Hash: content.Sum("served")}
	for name, src := range map[string]source.Source{"written": src, "unreadable": broken{src, syscall.EIO}} {
		f := Finder{Source: src, DB: "db", Log: slog.New(slog.DiscardHandler),
			Input: func(string, source.Listing) content.Input { return content.Input{Name: "3", Hash: content.Sum("now")} },
			Begun: func(content.Input) bool { return false }}
		q := Question{Served: served, Active: true, Compare: map[content.Input]store.Manifest{served: {}}}
		for range 3 {
			found, err := f.Find(t.Context(), q)
			expect.NoError(t, err)
			if until := time.Until(found.Next); found.Next.IsZero() || until > maxPause || found.Looks["3"].failures <= q.Last.Looks["3"].failures {
				t.Errorf("%s: again after %v, %+v, listed %v", name, until, found.Looks, found.Inputs)
			}
			q.Last = found
		}
	}
}
