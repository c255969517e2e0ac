package statuspage

import (
	"time"

	"sequins/internal/human"
	"sequins/observe/status"
)

// trafficView is what clients have asked in the last seconds; "" is not known.
type trafficView struct{ Rate, P50, P99, Misses, Errors string }

func newTraffic(t status.Traffic) (v trafficView) {
	if t.Seconds == 0 {
		return v
	}
	v.Rate, v.Misses = human.Rate(t.Requests), human.Rate(t.Misses)
	if t.Errors > 0 {
		v.Errors = human.Rate(t.Errors)
	}
	v.P50, v.P99 = "–", "–"
	if t.P99 > 0 {
		v.P50, v.P99 = latency(t.P50), latency(t.P99)
	}
	return v
}

// latency formats a time in seconds.
func latency(seconds float64) string { return human.Latency(time.Duration(seconds * 1e9)) }

// tiles are the figures of the requests; none if they are not known.
func (v trafficView) tiles() []tile {
	if v.Rate == "" {
		return nil
	}
	all := []tile{{"Requests", v.Rate, "/s"}, {Name: "p50", Value: v.P50}, {Name: "p99", Value: v.P99}, {"Misses", v.Misses, "/s"}}
	if v.Errors != "" {
		all = append(all, tile{"Errors", v.Errors, "/s"})
	}
	return all
}

// nodeTiles are the figures of the requests to all nodes.
func nodeTiles(st *status.Status) []tile {
	sum := st.Traffic
	for _, p := range st.Peers {
		sum.Add(p.Traffic)
	}
	tiles := newTraffic(sum).tiles()
	if len(tiles) > 0 && len(st.Peers) > 0 {
		tiles = append(tiles, tile{Name: "Nodes", Value: human.Count(int64(len(st.Peers) + 1))})
	}
	if len(tiles) > 0 {
		tiles = append(tiles, tile{Name: "Databases", Value: human.Count(int64(len(st.DBs)))})
	}
	return tiles
}
