package proxy

import "sequins/observe/metrics"

// Zones are the zones of nodes. The zero value knows none, and then no peer is preferred.
type Zones struct {
	// Own is the zone of this node, "" if it has none.
	Own string
	// Of returns the zone of another node by its address (host:port), "" if it has none or is not known. It is called for
	// requests, so it must not block. nil is for a node without others.
	Of func(addr string) string
}

// Near reports whether a node is in the zone of this one.
func (z *Zones) Near(addr string) bool { return z.where(addr) == metrics.ZoneSame }

// where returns the zone of a node, seen from this one.
func (z *Zones) where(addr string) metrics.Zone {
	if z.Own == "" || z.Of == nil {
		return metrics.ZoneUnknown
	}
	switch z.Of(addr) {
	case z.Own:
		return metrics.ZoneSame
	case "":
		return metrics.ZoneUnknown
	}
	return metrics.ZoneOther
}

// nearLast moves the nodes that are in the zone of this one to the end of addrs, and returns their number.
func (z *Zones) nearLast(addrs []string) (near int) {
	for i := len(addrs) - 1; i >= 0; i-- {
		if z.Near(addrs[i]) {
			near++
			last := len(addrs) - near
			addrs[i], addrs[last] = addrs[last], addrs[i]
		}
	}
	return near
}
