package metrics

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"sequins/observe/status"
)

// Traffic is that of clients in the last five seconds.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New().Server
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		a, b := s.DB("a"), s.DB("b")
		if dbs, all := s.Traffic(); len(dbs) > 0 || all != (status.Traffic{}) {
			t.Errorf("before it is followed: %+v, %+v", dbs, all)
		}
		go func() {
			s.FollowTraffic(ctx)
			close(ended)
		}()
		time.Sleep(100 * time.Millisecond) // so that requests and readings do not coincide
		for range 12 {                     // five seconds each
			for range 10 {
				for range 90 {
					a.Clients.Done(0, 200, 10*time.Microsecond, 1)
				}
				for range 9 {
					a.Clients.Done(1, 404, 20*time.Microsecond, 0)
				}
				a.Redis.Done(0, 500, 2*time.Millisecond, 0)
				a.Scans.Done(0, 200, time.Minute, 0)
				a.Peers.Done(0, 200, time.Hour, 0)
				b.Batches.Done(0, 200, 100*time.Microsecond, 0)
				time.Sleep(500 * time.Millisecond)
			}
			dbs, all := s.Traffic()
			got := dbs["a"]
			if math.Abs(got.Requests-202) > 5 || math.Abs(got.Misses-18) > .5 || math.Abs(got.Errors-2) > .1 || got.Seconds < 5 || got.Seconds > 10 {
				t.Fatalf("a: %+v", got)
			}
			near(t, "P50", got.P50*1e3, .010)
			near(t, "P99", got.P99*1e3, .020)
			if math.Abs(dbs["b"].Requests-2) > .1 || math.Abs(all.Requests-204) > 5 || all.P99 < got.P99 {
				t.Fatalf("b: %+v, all: %+v", dbs["b"], all)
			}
		}
		// What was long ago does not count.
		time.Sleep(2*trafficPeriod + time.Second)
		synctest.Wait()
		if dbs, all := s.Traffic(); dbs["a"].Requests != 0 || dbs["a"].P99 != 0 || all.Requests != 0 {
			t.Errorf("ten seconds later: %+v, %+v", dbs["a"], all)
		}
		s.Forget("a")
		if dbs, _ := s.Traffic(); len(dbs) != 1 {
			t.Errorf("of a db that is gone: %+v", dbs)
		}
		s.DB("a").Clients.Done(0, 200, time.Microsecond, 1) // a new one of this name
		if dbs, _ := s.Traffic(); len(dbs) != 1 {
			t.Errorf("of a db that is new: %+v", dbs)
		}
		cancel()
		<-ended
	})
}
