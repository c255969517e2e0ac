package metrics

import "math"

// Vars is a summary for /debug/vars, with the names and types of Stripe's sequins.
type Vars struct {
	// QPS counts the requests of clients for keys per second in the last whole period of FollowTraffic.
	QPS QPS `json:"Qps"`
	// Latency is the latency of those requests.
	Latency Latency
	// DiskUsed is the size of the blocks in the local store, in bytes.
	DiskUsed int64
}

// QPS counts requests in total and by status code: the codes of Stripe's sequins
// always, others if not 0.
type QPS struct {
	Total    int64
	ByStatus map[string]int64
}

// Latency is in milliseconds, and 0 without requests. Mean is exact; the
// quantiles are interpolated in histogram buckets that are 20 % wide.
type Latency struct {
	Max, Mean, P9999, P99, P95, P90, P75, P50, P25 float64
}

// Vars returns the current summary.
func (s *Server) Vars() Vars {
	var sum totals
	for _, k := range s.keys() {
		if p := k.period.Load(); p != nil {
			sum.add(&p.lookups, 1)
		}
	}
	v := Vars{QPS: sum.qps(), Latency: sum.latency()}
	if f := s.state.Load(); f != nil {
		st := (*f)()
		v.DiskUsed = st.Status.Stored()
	}
	return v
}

// add adds other totals, or with -1 as times, subtracts them.
func (t *totals) add(o *totals, times int64) {
	for i, n := range o.codes {
		t.codes[i] += n * uint64(times)
	}
	for i, n := range o.buckets {
		t.buckets[i] += n * uint64(times)
	}
	t.nanos += o.nanos * uint64(times)
}

// oldCodes are the codes that QPS always contains.
var oldCodes = []string{"200", "400", "404", "499", "500", "501", "502", "504"}

// qps returns the requests of a period per second, rounded up, so that few are not none.
func (t *totals) qps() QPS {
	q := QPS{ByStatus: make(map[string]int64)}
	for _, code := range oldCodes {
		q.ByStatus[code] = 0
	}
	for i, n := range t.codes {
		if n > 0 {
			perSecond := int64(math.Ceil(float64(n) / trafficPeriod.Seconds()))
			q.ByStatus[codeLabel(i)] = perSecond
			q.Total += perSecond
		}
	}
	return q
}

func (t *totals) latency() (l Latency) {
	var n uint64
	for _, in := range t.buckets {
		n += in
	}
	if n == 0 {
		return l
	}
	l.Mean = float64(t.nanos) / float64(n) / 1e6
	for _, p := range []struct {
		to *float64
		q  float64
	}{{&l.Max, 1}, {&l.P9999, .9999}, {&l.P99, .99}, {&l.P95, .95}, {&l.P90, .9}, {&l.P75, .75}, {&l.P50, .5}, {&l.P25, .25}} {
		*p.to = t.quantile(p.q, n) / 1e6
	}
	return l
}

// quantile returns the time, in nanoseconds, within which a share q of n requests
// were done. Durations are assumed to be evenly distributed within a bucket;
// those above all buckets count as the last bound.
func (t *totals) quantile(q float64, n uint64) float64 {
	rank := math.Ceil(q * float64(n))
	below := 0.0
	for i, in := range t.buckets {
		if below+float64(in) < rank || in == 0 {
			below += float64(in)
			continue
		}
		if i == len(bounds) {
			break
		}
		from := 0.0
		if i > 0 {
			from = float64(bounds[i-1])
		}
		return from + (float64(bounds[i])-from)*(rank-below)/float64(in)
	}
	return float64(bounds[len(bounds)-1])
}
