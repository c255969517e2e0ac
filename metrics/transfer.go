package metrics

import "github.com/prometheus/client_golang/prometheus"

// Transfer counts blocks that are copied between nodes. It implements
// prometheus.Collector and is safe for concurrent use. All methods may be called
// on a nil *Transfer and then count nothing.
type Transfer struct {
	received, given, blocks, refused *prometheus.CounterVec
	streams                          *prometheus.GaugeVec
}

func newTransfer() *Transfer {
	db := []string{"db"}
	return &Transfer{
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_peer_received_bytes_total", Help: "Bytes of blocks received from other nodes.",
		}, db),
		given: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_peer_given_bytes_total", Help: "Bytes of blocks sent to other nodes.",
		}, db),
		blocks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_peer_blocks_total", Help: "Blocks received from other nodes, verified and published.",
		}, db),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_peer_blocks_refused_total", Help: "Copies of blocks from other nodes that broke off or were not what they should be.",
		}, db),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sequins_peer_streams", Help: "Blocks that are being copied between nodes, by direction: given or received.",
		}, []string{"direction"}),
	}
}

// Received counts bytes received for a db.
func (t *Transfer) Received(db string, bytes int) {
	if t != nil {
		t.received.WithLabelValues(db).Add(float64(bytes))
	}
}

// Given counts bytes sent for a db.
func (t *Transfer) Given(db string, bytes int) {
	if t != nil {
		t.given.WithLabelValues(db).Add(float64(bytes))
	}
}

// Ended counts a copied block of a db, or one that was refused.
func (t *Transfer) Ended(db string, ok bool) {
	switch {
	case t == nil:
	case ok:
		t.blocks.WithLabelValues(db).Inc()
	default:
		t.refused.WithLabelValues(db).Inc()
	}
}

// Stream counts a running copy, given or received, until the returned function is
// called.
func (t *Transfer) Stream(direction string) (ended func()) {
	if t == nil {
		return func() {}
	}
	g := t.streams.WithLabelValues(direction)
	g.Inc()
	return g.Dec
}

// Forget drops the counters of a removed db.
func (t *Transfer) Forget(db string) {
	if t == nil {
		return
	}
	for _, v := range []*prometheus.CounterVec{t.received, t.given, t.blocks, t.refused} {
		v.DeleteLabelValues(db)
	}
}

// Describe implements prometheus.Collector.
func (t *Transfer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range t.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (t *Transfer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range t.collectors() {
		c.Collect(ch)
	}
}

func (t *Transfer) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.received, t.given, t.blocks, t.refused, t.streams}
}
