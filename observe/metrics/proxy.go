package metrics

import "github.com/prometheus/client_golang/prometheus"

// Outcome is the result of an attempt to get an answer from a peer.
type Outcome string

// The outcomes of an attempt.
const (
	ProxyOK        Outcome = "ok"        // its answer was used
	ProxyAbsent    Outcome = "absent"    // the peer lacks the version or the partition
	ProxyError     Outcome = "error"     // no connection, a lost one, or an unusable answer
	ProxyTimeout   Outcome = "timeout"   // no answer before the deadline of the request
	ProxyCancelled Outcome = "cancelled" // another attempt was faster, or the request was cancelled
)

// Zone is the zone of an asked node, seen from this one.
type Zone int

// The zones of an attempt.
const (
	ZoneUnknown Zone = iota // one of the two nodes has none
	ZoneSame
	ZoneOther
)

var proxyZones = [...]string{ZoneUnknown: "unknown", ZoneSame: "same", ZoneOther: "other"}

// proxyStages are the first attempt of a request, the second, and all later ones.
var proxyStages = [...]string{"1", "2", "3+"}

// Proxy counts attempts at other nodes. The zero value counts nothing.
type Proxy struct {
	InFlight     *Vector // attempts that Done has not ended
	Opened, Open *Vector // connections

	attempts [len(proxyStages)][len(proxyZones)]map[Outcome]prometheus.Counter // looked up once, as each read of another node's key counts one
}

func (m *Metrics) newProxy() *Proxy {
	p := &Proxy{
		InFlight: m.gauge("sequins_proxy_attempts_in_flight", "Attempts at other nodes in progress."),
		Opened:   m.counter("sequins_proxy_connections_opened_total", "Connections opened to other nodes."),
		Open:     m.gauge("sequins_proxy_connections", "Open connections to other nodes."),
	}
	attempts := m.counter("sequins_proxy_attempts_total", "Attempts to get an answer from another node, by stage, zone and outcome.", "stage", "zone", "outcome")
	for i, stage := range proxyStages {
		for z, zone := range proxyZones {
			p.attempts[i][z] = map[Outcome]prometheus.Counter{}
			for _, o := range []Outcome{ProxyOK, ProxyAbsent, ProxyError, ProxyTimeout, ProxyCancelled} {
				p.attempts[i][z][o] = attempts.create(stage, zone, string(o)).(prometheus.Counter)
			}
		}
	}
	return p
}

// Done counts a finished attempt. Stage is 1 for the first attempt of a request.
func (p *Proxy) Done(stage int, zone Zone, o Outcome) {
	p.InFlight.Add(-1)
	if c := p.attempts[min(max(stage, 1), len(proxyStages))-1][zone][o]; c != nil {
		c.Inc()
	}
}
