package load

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"sequins/shard"
	"sequins/test/sequencefiles"
)

// timed loads everything in a bubble, where time passes only when all wait.
func timed(t *testing.T, w *world, opts Options, loads int) time.Duration {
	t.Helper()
	var took time.Duration
	unlimited := opts
	unlimited.Bandwidth = nil // planning is outside of the bubble
	plan := check(newLoader(w.src, w.store, nil, unlimited).Plan(t.Context(), "db", "1"))(t)
	worlds := make([]*world, loads)
	for i := range worlds {
		worlds[i] = &world{t: t, root: w.root, src: w.src}
		worlds[i].newStore()
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var wg sync.WaitGroup
		for _, w := range worlds {
			wg.Go(func() {
				l := newLoader(w.src, w.store, nil, opts)
				if err := l.Load(t.Context(), plan, all(plan)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		took = time.Since(start)
	})
	return took
}

func within(t *testing.T, got, want time.Duration) {
	t.Helper()
	if math.Abs(got.Seconds()/want.Seconds()-1) > 0.05 {
		t.Errorf("took %v, want %v", got, want)
	}
}

func bulk(n, value int) []data {
	files := cut(shard.Hadoop, 5, keys(n)...)
	for _, f := range files {
		for i := range f.records {
			f.records[i].value = strings.Repeat("v", value)
		}
	}
	return files
}

func TestBandwidth(t *testing.T) {
	for records, bytesPerSecond := range map[int]float64{500: 50_000, 2000: 400_000} {
		w := newWorld(t)
		w.write(bulk(records, 1000), sequencefiles.WriterOptions{})
		var size int64
		for _, f := range check(w.src.Contents(t.Context(), "db", "1"))(t).Files {
			size += f.Size
		}
		want := time.Duration(float64(size) / bytesPerSecond * float64(time.Second))
		limiter := func() *rate.Limiter {
			return rate.NewLimiter(rate.Limit(bytesPerSecond), max(4<<10, int(bytesPerSecond/20)))
		}
		for _, partitioner := range []string{"hadoop", "string"} {
			opts := Options{Partitioner: partitioner, Bandwidth: limiter(), Workers: 4}
			within(t, timed(t, w, opts, 1), want)
		}
		// Three loads share it.
		opts := Options{Partitioner: "hadoop", Bandwidth: limiter()}
		within(t, timed(t, w, opts, 3), 3*want)
	}
}

// A limiter that lets nothing through fails the load rather than hang it.
func TestBandwidthOfNothing(t *testing.T) {
	w := newWorld(t)
	w.write(bulk(10, 10), sequencefiles.WriterOptions{})
	plan := check(newLoader(w.src, w.store, nil, Options{Partitioner: "hadoop"}).Plan(t.Context(), "db", "1"))(t)
	l := newLoader(w.src, w.store, nil, Options{Bandwidth: rate.NewLimiter(10, 0)})
	if err := l.Load(t.Context(), plan, all(plan)); err == nil {
		t.Error("loaded")
	}
}

// Throttle is per record and per load, however many files are read at a time.
func TestThrottle(t *testing.T) {
	w := newWorld(t)
	w.write(bulk(3000, 10), sequencefiles.WriterOptions{})
	for _, throttle := range []time.Duration{50 * time.Microsecond, 800 * time.Microsecond, 40 * time.Millisecond, time.Second} {
		for _, partitioner := range []string{"hadoop", "string"} {
			opts := Options{Partitioner: partitioner, Throttle: throttle, Workers: 3}
			within(t, timed(t, w, opts, 1), 3000*throttle)
		}
	}
}

// A load that waits for its turn is cancelled at once.
func TestCancelWhileWaiting(t *testing.T) {
	w := newWorld(t)
	w.write(bulk(3000, 100), sequencefiles.WriterOptions{})
	for _, opts := range []Options{{Throttle: time.Hour}, {Bandwidth: rate.NewLimiter(0.001, 1000)}} {
		plan := check(newLoader(w.src, nil, nil, Options{Partitioner: "hadoop"}).Plan(t.Context(), "db", "1"))(t)
		l := newLoader(w.src, w.store, nil, opts)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			err := l.Load(ctx, plan, all(plan))
			if err == nil || time.Since(start) > time.Minute {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			start = time.Now()
			err = l.Load(ctx, plan, all(plan))
			if !errors.Is(err, context.Canceled) || time.Since(start) != time.Minute {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		})
		w.clean()
	}
}
