package metrics

import (
	"context"
	"math"
	"time"

	"sequins/internal/sleep"
	"sequins/observe/status"
)

// trafficPeriod is how often the counters are read: traffic is that of the last whole period.
const trafficPeriod = 5 * time.Second

// A period is what clients have asked of a db between two readings of its counters.
type period struct {
	end     time.Time
	seconds float64
	lookups totals // for keys, over HTTP and the Redis protocol
	scans   totals
}

// endPeriod ends a period, and begins the next one. One goroutine calls it.
func (k *Keys) endPeriod(now time.Time) *period {
	read := period{end: now, lookups: k.Clients.totals(), scans: k.Scans.totals()}
	for _, more := range []*Requests{k.Batches, k.Redis} {
		t := more.totals()
		read.lookups.add(&t, 1)
	}
	ended := read
	ended.seconds = now.Sub(k.read.end).Seconds()
	ended.lookups.add(&k.read.lookups, -1)
	ended.scans.add(&k.read.scans, -1)
	k.read = read
	k.period.Store(&ended)
	return &ended
}

// FollowTraffic reads the counters of all dbs periodically until ctx ends, and sends their increase to the agent. Without it there is no
// Traffic, and none in Vars.
func (s *Server) FollowTraffic(ctx context.Context) {
	s.endPeriods()
	for sleep.For(ctx, trafficPeriod) == nil {
		s.endPeriods()
	}
	s.endPeriods()
}

func (s *Server) endPeriods() {
	now := time.Now()
	for name, k := range s.keys() {
		if n, _, _ := k.endPeriod(now).lookups.counts(); s.statsd != nil && name != "" && n > 0 {
			_ = s.statsd.client.Count("db.requests", int64(n), []string{"db:" + tagValue(name)}, 1) // the only error is a closed client
		}
	}
}

// Traffic returns what clients have asked of each db in the last period, and of all dbs together. A db that was not there at its end has none.
func (s *Server) Traffic() (dbs map[string]status.Traffic, all status.Traffic) {
	dbs = make(map[string]status.Traffic)
	var sum period
	for name, k := range s.keys() {
		p := k.period.Load()
		if name == "" || p == nil {
			continue
		}
		dbs[name] = p.traffic()
		sum.lookups.add(&p.lookups, 1)
		sum.scans.add(&p.scans, 1)
		sum.seconds = max(sum.seconds, p.seconds)
	}
	return dbs, sum.traffic()
}

func (p *period) traffic() (t status.Traffic) {
	if p.seconds <= 0 {
		return t
	}
	n, failed, missed := p.lookups.counts()
	scans, failedScans, _ := p.scans.counts()
	rate := func(count uint64) float64 { return math.Round(float64(count)/p.seconds*1000) / 1000 }
	t = status.Traffic{Seconds: math.Round(p.seconds*10) / 10, Requests: rate(n + scans), Misses: rate(missed), Errors: rate(failed + failedScans)}
	if n > 0 {
		t.P50, t.P99 = round(p.lookups.quantile(.5, n)), round(p.lookups.quantile(.99, n))
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
