package metrics

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

// proxyStages are the first attempt of a request, the second, and all later ones.
var proxyStages = [...]string{"1", "2", "3+"}

// Proxy counts attempts at other nodes. It is safe for concurrent use; the zero value counts nothing.
type Proxy struct{ attempts, inFlight, opened, open *vector }

func (m *Metrics) newProxy() *Proxy {
	p := &Proxy{
		attempts: m.counter("sequins_proxy_attempts_total", "Attempts to get an answer from another node, by stage and outcome.", "stage", "outcome"),
		inFlight: m.gauge("sequins_proxy_attempts_in_flight", "Attempts at other nodes in progress."),
		opened:   m.counter("sequins_proxy_connections_opened_total", "Connections opened to other nodes."),
		open:     m.gauge("sequins_proxy_connections", "Open connections to other nodes."),
	}
	for _, stage := range proxyStages {
		for _, o := range []Outcome{ProxyOK, ProxyAbsent, ProxyError, ProxyTimeout, ProxyCancelled} {
			p.attempts.create(stage, string(o))
		}
	}
	return p
}

// Begin counts an attempt as in flight until Done.
func (p *Proxy) Begin() { p.inFlight.add(1) }

// Done counts a finished attempt. Stage is 1 for the first attempt of a request.
func (p *Proxy) Done(stage int, o Outcome) {
	p.inFlight.add(-1)
	p.attempts.add(1, proxyStages[min(max(stage, 1), len(proxyStages))-1], string(o))
}

// Opened counts a connection to a peer, which is open until Closed.
func (p *Proxy) Opened() {
	p.opened.add(1)
	p.open.add(1)
}

// Closed reports the end of a connection to a peer.
func (p *Proxy) Closed() { p.open.add(-1) }
