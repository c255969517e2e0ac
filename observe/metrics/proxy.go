package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is the result of an attempt to get an answer from a peer.
type Outcome uint8

// The outcomes of an attempt.
const (
	ProxyOK        Outcome = iota // its answer was used
	ProxyAbsent                   // the peer lacks the version or the partition
	ProxyError                    // no connection, a lost one, or an unusable answer
	ProxyTimeout                  // no answer before the deadline of the request
	ProxyCancelled                // another attempt was faster, or the request was cancelled
	outcomes
)

var outcomeLabels = [outcomes]string{"ok", "absent", "error", "timeout", "cancelled"}

// String returns the label of the outcome.
func (o Outcome) String() string { return outcomeLabels[min(o, outcomes-1)] }

// proxyStages are the first attempt of a request, the second, and all later ones.
var proxyStages = [...]string{"1", "2", "3+"}

// Proxy counts attempts at other nodes. It implements prometheus.Collector and is
// safe for concurrent use.
type Proxy struct {
	attempts [len(proxyStages)][outcomes]atomic.Uint64
	inFlight atomic.Int64
	opened   atomic.Uint64
	open     atomic.Int64
}

// Begin counts an attempt as in flight until Done.
func (p *Proxy) Begin() { p.inFlight.Add(1) }

// Done counts a finished attempt. Stage is 1 for the first attempt of a request.
func (p *Proxy) Done(stage int, o Outcome) {
	p.inFlight.Add(-1)
	p.attempts[min(max(stage, 1), len(proxyStages))-1][min(o, outcomes-1)].Add(1)
}

// Opened counts a connection to a peer, which is open until Closed.
func (p *Proxy) Opened() {
	p.opened.Add(1)
	p.open.Add(1)
}

// Closed reports the end of a connection to a peer.
func (p *Proxy) Closed() { p.open.Add(-1) }

// Describe implements prometheus.Collector, as that of Server does.
func (p *Proxy) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (p *Proxy) Collect(ch chan<- prometheus.Metric) {
	for stage, name := range proxyStages {
		for o, outcome := range outcomeLabels {
			counter(ch, "sequins_proxy_attempts_total", "Attempts to get an answer from another node, by stage and outcome.",
				float64(p.attempts[stage][o].Load()), label{"stage", name}, label{"outcome", outcome})
		}
	}
	gauge(ch, "sequins_proxy_attempts_in_flight", "Attempts at other nodes in progress.", float64(p.inFlight.Load()))
	counter(ch, "sequins_proxy_connections_opened_total", "Connections opened to other nodes.", float64(p.opened.Load()))
	gauge(ch, "sequins_proxy_connections", "Open connections to other nodes.", float64(p.open.Load()))
}
