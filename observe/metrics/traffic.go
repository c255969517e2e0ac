package metrics

import (
	"context"
	"math"
	"time"

	"sequins/observe/status"
)

// trafficPeriod is how often the counters are read: traffic is that of the last one to two periods.
const trafficPeriod = 5 * time.Second

// A reading is the state of the counters of clients' requests at a time.
type reading struct {
	at      time.Time
	lookups totals // for keys, over HTTP and the Redis protocol
	scans   totals
}

// A period is what is between two readings; the first one of a db is empty.
type period struct{ from, to *reading }

// read reads the counters of clients' requests.
func (k *Keys) read(now time.Time) *reading {
	r := &reading{at: now, lookups: k.Clients.totals(), scans: k.Scans.totals()}
	for _, more := range []*Requests{k.Batches, k.Redis} {
		t := more.totals()
		r.lookups.add(&t, 1)
	}
	return r
}

// endPeriod begins another period, and returns how many lookups there were in the last one. One goroutine calls it.
func (k *Keys) endPeriod(now time.Time) (lookups uint64) {
	next := &period{to: k.read(now)}
	lookups, _, _ = next.to.lookups.counts()
	if last := k.period.Load(); last != nil {
		before, _, _ := last.to.lookups.counts()
		next.from, lookups = last.to, lookups-before
	} else {
		next.from = next.to
	}
	k.period.Store(next)
	return lookups
}

// FollowTraffic reads the counters of all dbs periodically until ctx ends, and sends their increase to the agent. Without it there is no
// Traffic, and none in Vars.
func (s *Server) FollowTraffic(ctx context.Context) {
	tick := time.NewTicker(trafficPeriod)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.endPeriods()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	s.endPeriods()
}

func (s *Server) endPeriods() {
	now := time.Now()
	for name, k := range s.keys() {
		s.statsd.requests(name, k.endPeriod(now))
	}
}

// Traffic returns what clients have asked of each db in the last seconds, and of all dbs together. A db that was not
// there a period ago has none.
func (s *Server) Traffic(now time.Time) (dbs map[string]status.Traffic, all status.Traffic) {
	dbs = make(map[string]status.Traffic)
	sum := reading{at: now}
	for name, k := range s.keys() {
		last := k.period.Load()
		if name == "" || last == nil || !now.After(last.from.at) {
			continue
		}
		before, r := last.from, k.read(now)
		r.at = before.at
		r.lookups.add(&before.lookups, -1)
		r.scans.add(&before.scans, -1)
		dbs[name] = r.traffic(now)
		sum.lookups.add(&r.lookups, 1)
		sum.scans.add(&r.scans, 1)
		if r.at.Before(sum.at) {
			sum.at = r.at
		}
	}
	return dbs, sum.traffic(now)
}

// traffic returns the traffic in the increase of the counters since r.at.
func (r *reading) traffic(now time.Time) (t status.Traffic) {
	seconds := now.Sub(r.at).Seconds()
	if seconds <= 0 {
		return t
	}
	n, failed, missed := r.lookups.counts()
	scans, failedScans, _ := r.scans.counts()
	rate := func(count uint64) float64 { return math.Round(float64(count)/seconds*1000) / 1000 }
	t = status.Traffic{Seconds: math.Round(seconds*10) / 10, Requests: rate(n + scans), Misses: rate(missed), Errors: rate(failed + failedScans)}
	if n > 0 {
		t.P50, t.P99 = round(r.lookups.quantile(.5, n)), round(r.lookups.quantile(.99, n))
	}
	return t
}

// round returns nanoseconds in seconds, to the nanosecond.
func round(nanos float64) float64 { return math.Round(nanos) / 1e9 }

// counts returns the number of requests, of those answered with 500 or more, and of those with 404.
func (t *totals) counts() (all, failed, missed uint64) {
	for i, n := range t.codes {
		all += n
		switch {
		case i == codeOther:
		case codes[i] >= 500:
			failed += n
		case codes[i] == 404:
			missed += n
		}
	}
	return all, failed, missed
}
