package metrics

import (
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"sequins/observe/status"
)

// The routes of requests.
const (
	RouteKey     = "key"     // GET /<db>/<key>
	RoutePeer    = "peer"    // GET /<db>/<key>?proxy=<version>, from another node
	RouteBatch   = "batch"   // POST /<db>, GET /<db>?key=
	RouteScan    = "scan"    // GET /<db>?prefix=, ?start=, ?count and so on
	RouteRedis   = "redis"   // commands of the Redis protocol; commands that are looked up together count once
	RouteStatus  = "status"  // GET /, /<db>
	RouteHealth  = "health"  // GET /healthz, /livez, /readyz
	RouteInvalid = "invalid" // malformed requests
)

// Server counts requests. It implements prometheus.Collector and is safe for
// concurrent use.
type Server struct {
	// Status, Health and Invalid count requests that are not for a key.
	Status, Health, Invalid *Requests
	// Unknown counts requests for keys of unknown dbs, all under the db "".
	Unknown *Keys

	checksums *Vector
	state     atomic.Pointer[func() State]

	statsd *Statsd // nil without SendTo

	mu  sync.Mutex
	dbs map[string]*Keys // dbs that were not forgotten
}

// State is the state of the server that a scrape reports: see SetState.
type State struct {
	// Connections is the number of open connections of clients.
	Connections int
	// Refused counts connections refused because of the limit, BadHandshakes
	// failed TLS handshakes.
	Refused, BadHandshakes int64
	// Status is the status of the node.
	Status status.Status
}

func (m *Metrics) newServer() *Server {
	return &Server{
		Status:    newRequests(RouteStatus, ""),
		Health:    newRequests(RouteHealth, ""),
		Invalid:   newRequests(RouteInvalid, ""),
		Unknown:   newKeys(""),
		dbs:       make(map[string]*Keys),
		checksums: m.counter("sequins_checksum_failures_total", "Blocks found damaged by a request, by the scrub, or when they were opened.", "db"),
	}
}

// DB returns the counters for the keys of an existing db, which begin at 0.
// Callers should keep the result.
func (s *Server) DB(name string) *Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.dbs[name]
	if k == nil {
		k = newKeys(name)
		s.dbs[name] = k
		s.checksums.create(name)
	}
	return k
}

// Forget drops the counters of a removed db.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.dbs, name)
	s.checksums.DeletePartialMatch(prometheus.Labels{"db": name})
}

// Begin counts a request as in flight until End. It begins as an invalid one.
func (s *Server) Begin(stripe uint32) { s.Invalid.stripe(stripe).running.Add(1) }

// End ends what Begin began, with the same stripe.
func (s *Server) End(stripe uint32) { s.Invalid.stripe(stripe).running.Add(-1) }

// ChecksumFailure counts a damaged block of a db.
func (s *Server) ChecksumFailure(db string) { s.checksums.Add(1, db) }

// SetState sets the function that returns the state at a scrape. It is called
// once per scrape and must not block.
func (s *Server) SetState(f func() State) { s.state.Store(&f) }

// keys returns the counters of requests for keys, by db; "" for unknown dbs.
func (s *Server) keys() map[string]*Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.dbs)
	all[""] = s.Unknown
	return all
}

// Describe implements prometheus.Collector. It describes nothing in advance: each metric is described where its value is read, see gauge.
func (s *Server) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	for _, r := range []*Requests{s.Status, s.Health, s.Invalid} {
		r.collect(ch, r.totals())
	}
	for db, k := range s.keys() {
		var reads uint64
		for _, r := range []*Requests{k.Clients, k.Peers, k.Batches, k.Scans, k.Redis} {
			t := r.totals()
			if r == k.Clients || t.any() { // most nodes have no peers and need no histograms of them
				r.collect(ch, t)
			}
			reads += t.reads
		}
		if db != "" {
			counter(ch, "sequins_block_reads_total", "Pages read from block files to answer requests.", float64(reads), label{"db", db})
		}
	}
	gauge(ch, "sequins_requests_in_flight", "Requests in progress.", float64(s.Invalid.totals().running))
	if f := s.state.Load(); f != nil {
		(*f)().collect(ch)
	}
}

func (r *Requests) collect(ch chan<- prometheus.Metric, t totals) {
	for i, n := range t.codes {
		if n > 0 {
			counter(ch, "sequins_requests_total", "Requests answered, by route, db (empty if unknown) and status code.",
				float64(n), label{"route", r.route}, label{"db", r.db}, label{"code", codeLabel(i)})
		}
	}
	of := []label{{"route", r.route}, {"db", r.db}}
	counter(ch, "sequins_response_bytes_total", "Bytes in the bodies of answers, by route and db.", float64(t.bytes), of...)
	desc, values := describe("sequins_request_duration_seconds",
		"Time from the end of the request header until the answer is ready; for large values, until the last byte is sent.", of)
	ch <- histogram(desc, &t.buckets, float64(t.nanos)/1e9, values...)
}

func (st State) collect(ch chan<- prometheus.Metric) {
	gauge(ch, "sequins_connections", "Open connections from clients, over HTTP and the Redis protocol.", float64(st.Connections))
	counter(ch, "sequins_refused_connections_total", "Connections refused because max_connections were open.", float64(st.Refused))
	counter(ch, "sequins_tls_handshakes_failed_total", "Failed TLS handshakes with clients and other nodes.", float64(st.BadHandshakes))
	s := &st.Status
	gauge(ch, "sequins_build_info", "1, with the versions of sequins and of Go.", 1, label{"version", s.Build}, label{"goversion", runtime.Version()})
	gauge(ch, "sequins_config_last_reload_successful",
		"1 if the last read of the configuration, at the start or at SIGHUP, and of the tokens, succeeded; else 0, and the previous ones are in use.",
		flag(s.ReloadError == "" && s.TokensError == ""))
	if !s.Certificate.Expires.IsZero() {
		gauge(ch, "sequins_certificate_expiry_timestamp_seconds", "When the certificate of the node expires, in Unix time.", unixTime(s.Certificate.Expires))
	}
	if s.Disk.Bytes > 0 {
		gauge(ch, "sequins_store_free_bytes", "Free bytes of the local store's file system that sequins may use.", float64(s.Disk.Free))
	}
	collectCluster(ch, s)
	collectWaiting(ch, s)
	gauge(ch, "sequins_source_unreachable_since_timestamp_seconds",
		"Since when the databases of the source cannot be listed, in Unix time; 0 while they can.", unixTime(s.SourceErrorSince))
	gauge(ch, "sequins_last_refresh_timestamp_seconds", "When the source was last listed, in Unix time; 0 if never.", unixTime(s.RefreshedAt))
	gauge(ch, "sequins_store_blocks_bytes", "Bytes of the blocks in use in the local store, of all versions.", float64(s.Stored()))
	for name, db := range s.DBs {
		collectDB(ch, name, db, s.Node)
	}
}

func collectCluster(ch chan<- prometheus.Metric, s *status.Status) {
	z := s.ZooKeeper
	if z == nil {
		return
	}
	gauge(ch, "sequins_zookeeper_connected", "1 if the node has a session with ZooKeeper, else 0.", flag(z.Connected))
	counter(ch, "sequins_zookeeper_sessions_total",
		"Sessions with ZooKeeper since the start. Each one but the first replaced an expired one.", float64(max(0, z.Sessions)))
	for state, n := range map[string]int{"published": z.Published, "pending": z.Pending} {
		gauge(ch, "sequins_zookeeper_znodes",
			"Znodes of this node: published, or pending if ZooKeeper does not have their current form yet.", float64(n), label{"state", state})
	}
	gauge(ch, "sequins_cluster_nodes",
		"Nodes that hold data, including this one and without routers, as seen by this node.", float64(z.Nodes))
	gauge(ch, "sequins_cluster_problems",
		"Settings of other nodes that differ from those of this node, so that they divide the data differently.", float64(z.Problems))
	differences := 0
	for _, d := range s.Differences {
		if d.IsFault() {
			differences++
		}
	}
	gauge(ch, "sequins_cluster_differences", "Settings that the nodes should have alike, and have not.", float64(differences))
}

// collectWaiting reports what a node waits for, and whether that keeps it from being ready.
func collectWaiting(ch chan<- prometheus.Metric, s *status.Status) {
	gauge(ch, "sequins_ready", "1 if the node should get requests, as /readyz says, else 0.",
		flag(!s.Draining && len(status.Blocking(s.Waiting)) == 0))
	for _, kind := range status.WaitKinds {
		n := 0
		for _, w := range s.Waiting {
			if w.For == kind {
				n++
			}
		}
		gauge(ch, "sequins_waiting", "What the node waits for, by kind: zookeeper, nodes, disk, source or load.", float64(n), label{"for", string(kind)})
	}
}

func collectDB(ch chan<- prometheus.Metric, name string, db status.DB, node string) {
	of := label{"db", name}
	states := make(map[status.State]int)
	for _, v := range db.Versions {
		if n, here := v.Nodes[node]; here {
			states[n.State]++
		}
	}
	for state, n := range states {
		gauge(ch, "sequins_versions", "Versions known to the node, by state.", float64(n), of, label{"state", string(state)})
	}
	current := db.Current(node)
	if current == "" {
		return
	}
	v := db.Versions[current]
	n := v.Nodes[node]
	gauge(ch, "sequins_version_info", "1, with the name of the current version.", 1, of, label{"version", current})
	gauge(ch, "sequins_version_partitions_missing",
		"Partitions of the current version that no node holds, as far as this node knows.", float64(v.MissingPartitions), of)
	gauge(ch, "sequins_version_diverged",
		"1 if the source has other files of the current version than it was loaded from, until this node has loaded it again.", flag(n.Diverged), of)
	gauge(ch, "sequins_version_partitions_underreplicated",
		"Partitions of the current version that some nodes hold, but fewer than replication.", float64(v.UnderreplicatedPartitions), of)
	gauge(ch, "sequins_version_active_timestamp_seconds", "When the current version became active, in Unix time.", unixTime(n.ActiveAt), of)
	gauge(ch, "sequins_version_last_modified_timestamp_seconds",
		"When the newest file of the current version was written in the source, in Unix time.", unixTime(n.LastModified), of)
	gauge(ch, "sequins_version_records", "Records of the current version on this node.", float64(n.Records), of)
	gauge(ch, "sequins_version_bytes", "Bytes on disk of the current version on this node.", float64(n.Bytes), of)
}
