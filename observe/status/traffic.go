package status

import "math"

// Traffic is what clients have asked of a database, or of all, in the last seconds.
type Traffic struct {
	// Seconds is the time that is measured: five seconds, or less after the start.
	Seconds float64 `json:"seconds"`
	// Requests are those for keys, batches and ranges, over HTTP and the Redis protocol, per second; a batch counts once.
	Requests float64 `json:"requests_per_second"`
	// Misses are requests for single keys that are absent, Errors those answered with 500 or more.
	Misses float64 `json:"misses_per_second"`
	Errors float64 `json:"errors_per_second"`
	// P50 and P99 are the times within which a half and 99 % of the requests were answered, in seconds, without those for
	// ranges; 0 without requests. Of several nodes they are those of the slowest.
	P50 float64 `json:"p50_seconds"`
	P99 float64 `json:"p99_seconds"`
}

// Add adds the traffic of another node. Whatever nodes send, a sum is a number that JSON has.
func (t *Traffic) Add(o Traffic) {
	t.Seconds = max(t.Seconds, o.Seconds)
	t.Requests = finite(t.Requests + o.Requests)
	t.Misses = finite(t.Misses + o.Misses)
	t.Errors = finite(t.Errors + o.Errors)
	t.P50, t.P99 = max(t.P50, o.P50), max(t.P99, o.P99)
}

// MissShare returns the part of the requests that were for absent keys, from 0 to 1.
func (t Traffic) MissShare() float64 {
	if t.Requests <= 0 {
		return 0
	}
	return min(1, t.Misses/t.Requests)
}

// Misses that are nearly all of at least a hundred requests are a sign that clients or the job that writes the keys are wrong.
const (
	nearlyAll     = .95
	enoughToJudge = 100
)

// NearlyAllMiss reports whether nearly all requests were for absent keys.
func (t Traffic) NearlyAllMiss() bool {
	return t.Requests*t.Seconds >= enoughToJudge && t.MissShare() >= nearlyAll
}

// Asked returns what clients ask of the db: of all nodes if there are several.
func (d DB) Asked() Traffic {
	if d.ClusterTraffic.Seconds > 0 {
		return d.ClusterTraffic
	}
	return d.Traffic
}

func finite(sum float64) float64 { return max(-math.MaxFloat64, min(sum, math.MaxFloat64)) }
