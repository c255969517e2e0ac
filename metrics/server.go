package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sequins/status"
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

	inFlight  gauge
	checksums *prometheus.CounterVec
	state     atomic.Pointer[func() State]
	redis     atomic.Pointer[func() RedisState]
	cache     atomic.Pointer[func() int64] // nil without a cache

	second atomic.Pointer[totals] // clients' requests in the last whole second; see Sample

	mu  sync.Mutex
	dbs map[string]*Keys // dbs that were not forgotten
}

// State is the state of the server that a scrape reports: see SetState.
type State struct {
	// Connections is the number of open client connections.
	Connections int
	// Refused counts connections refused because of the limit, BadHandshakes
	// failed TLS handshakes.
	Refused, BadHandshakes int64
	// Status is the status of the node.
	Status status.Status
}

// RedisState is the state of the server of the Redis protocol.
type RedisState struct {
	// Connections, Refused and BadHandshakes are as in State.
	Connections            int
	Refused, BadHandshakes int64
}

func newServer() *Server {
	return &Server{
		Status:   newRequests(RouteStatus, ""),
		Health:   newRequests(RouteHealth, ""),
		Invalid:  newRequests(RouteInvalid, ""),
		Unknown:  newKeys(""),
		inFlight: newGauge(),
		dbs:      make(map[string]*Keys),
		checksums: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sequins_checksum_failures_total",
			Help: "Blocks found damaged by a request, by the scrub, or when they were opened.",
		}, []string{"db"}),
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
		s.checksums.WithLabelValues(name)
	}
	return k
}

// Forget drops the counters of a removed db.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.dbs, name)
	s.checksums.DeleteLabelValues(name)
}

// Begin counts a request as in flight until End.
func (s *Server) Begin(stripe uint32) { s.inFlight.add(stripe, 1) }

// End ends what Begin began, with the same stripe.
func (s *Server) End(stripe uint32) { s.inFlight.add(stripe, -1) }

// ChecksumFailure counts a damaged block of a db.
func (s *Server) ChecksumFailure(db string) { s.checksums.WithLabelValues(db).Inc() }

// SetState sets the function that returns the state at a scrape. It is called
// once per scrape and must not block.
func (s *Server) SetState(f func() State) { s.state.Store(&f) }

// SetCache sets the function that returns the bytes of the cache at a scrape. The metrics of the cache are exposed from
// then on.
func (s *Server) SetCache(bytes func() int64) { s.cache.Store(&bytes) }

// SetRedis sets the function that returns the state of the server of the Redis protocol at a scrape. It must not block.
func (s *Server) SetRedis(f func() RedisState) { s.redis.Store(&f) }

// keys returns the counters of requests for keys, by db; "" for unknown dbs.
func (s *Server) keys() map[string]*Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.dbs)
	all[""] = s.Unknown
	return all
}

var (
	descRequests = prometheus.NewDesc("sequins_requests_total",
		"Requests answered, by route, db (empty if unknown) and status code.",
		[]string{"route", "db", "code"}, nil)
	descDuration = prometheus.NewDesc("sequins_request_duration_seconds",
		"Time from the end of the request header until the answer is ready; for large values, until the last byte is sent.",
		[]string{"route", "db"}, nil)
	descBytes = prometheus.NewDesc("sequins_response_bytes_total",
		"Bytes in the bodies of answers, by route and db.", []string{"route", "db"}, nil)
	descBatched = prometheus.NewDesc("sequins_batch_keys_total",
		"Keys in the batches of clients, and in reads of the Redis protocol that are looked up together.", []string{"db"}, nil)
	descCacheHits = prometheus.NewDesc("sequins_cache_hits_total",
		"Keys of partitions on other nodes that were answered from the cache.", []string{"db"}, nil)
	descCacheMisses = prometheus.NewDesc("sequins_cache_misses_total",
		"Keys of partitions on other nodes that were not in the cache.", []string{"db"}, nil)
	descCacheBytes = prometheus.NewDesc("sequins_cache_bytes",
		"Memory of the entries of the cache.", nil, nil)
	descScanned = prometheus.NewDesc("sequins_scan_records_total",
		"Records sent to clients by ordered reads.", []string{"db"}, nil)
	descReads = prometheus.NewDesc("sequins_block_reads_total",
		"Pages read from block files to answer requests.", []string{"db"}, nil)
	descInFlight = prometheus.NewDesc("sequins_requests_in_flight",
		"Requests in progress.", nil, nil)
	descConns = prometheus.NewDesc("sequins_connections",
		"Open connections from clients.", nil, nil)
	descRedisConns = prometheus.NewDesc("sequins_redis_connections",
		"Open connections from clients of the Redis protocol.", nil, nil)
	descRefused = prometheus.NewDesc("sequins_refused_connections_total",
		"Connections refused because max_connections were open.", nil, nil)
	descHandshakes = prometheus.NewDesc("sequins_tls_handshakes_failed_total",
		"Failed TLS handshakes with clients and other nodes.", nil, nil)
	descDraining = prometheus.NewDesc("sequins_draining",
		"1 during shutdown, else 0.", nil, nil)
	descReady = prometheus.NewDesc("sequins_ready",
		"1 if the node should get requests, as /readyz says, else 0.", nil, nil)
	descWaiting = prometheus.NewDesc("sequins_waiting",
		"What the node waits for, by kind: zookeeper, nodes, disk, source or load.", []string{"for"}, nil)
	descSourceError = prometheus.NewDesc("sequins_source_unreachable_since_timestamp_seconds",
		"Since when the databases of the source cannot be listed, in Unix time; 0 while they can.", nil, nil)
	descRefreshed = prometheus.NewDesc("sequins_last_refresh_timestamp_seconds",
		"When the source was last listed, in Unix time; 0 if never.", nil, nil)
	descStored = prometheus.NewDesc("sequins_store_blocks_bytes",
		"Bytes of the blocks in use in the local store, of all versions.", nil, nil)
	descVersions = prometheus.NewDesc("sequins_versions",
		"Versions known to the node, by state.", []string{"db", "state"}, nil)
	descVersion = prometheus.NewDesc("sequins_version_info",
		"1, with the name of the current version.", []string{"db", "version"}, nil)
	descPartitions = prometheus.NewDesc("sequins_version_partitions",
		"Partitions of the current version.", []string{"db"}, nil)
	descMissing = prometheus.NewDesc("sequins_version_partitions_missing",
		"Partitions of the current version that no node holds, as far as this node knows.", []string{"db"}, nil)
	descDiverged = prometheus.NewDesc("sequins_version_diverged",
		"1 if the source has other files of the current version than it was loaded from, until this node has loaded it again.", []string{"db"}, nil)
	descUnderreplicated = prometheus.NewDesc("sequins_version_partitions_underreplicated",
		"Partitions of the current version that some nodes hold, but fewer than replication.", []string{"db"}, nil)
	descActive = prometheus.NewDesc("sequins_version_active_timestamp_seconds",
		"When the current version became active, in Unix time.", []string{"db"}, nil)
	descModified = prometheus.NewDesc("sequins_version_last_modified_timestamp_seconds",
		"When the newest file of the current version was written in the source, in Unix time.", []string{"db"}, nil)
	descGateValue = prometheus.NewDesc("sequins_gate_value",
		"What a rule of the gate has found for the newest version that was judged.", []string{"db", "rule"}, nil)
	descGateLimit = prometheus.NewDesc("sequins_gate_limit",
		"What the rule allows.", []string{"db", "rule"}, nil)
	descRecords = prometheus.NewDesc("sequins_version_records",
		"Records of the current version on this node.", []string{"db"}, nil)
	descDisk = prometheus.NewDesc("sequins_version_bytes",
		"Bytes on disk of the current version on this node.", []string{"db"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRequests, descDuration, descBytes, descBatched, descScanned, descCacheHits, descCacheMisses, descCacheBytes, descReads, descInFlight, descConns, descRedisConns, descRefused, descHandshakes, descDraining, descReady, descWaiting, descSourceError,
		descRefreshed, descStored, descVersions, descVersion, descPartitions, descMissing, descDiverged, descUnderreplicated, descActive, descModified, descRecords, descDisk, descGateValue, descGateLimit,
	} {
		ch <- d
	}
	s.checksums.Describe(ch)
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	for _, r := range []*Requests{s.Status, s.Health, s.Invalid} {
		r.collect(ch, r.totals())
	}
	for db, k := range s.keys() {
		clients, peers := k.Clients.totals(), k.Peers.totals()
		k.Clients.collect(ch, clients)
		batches := k.Batches.totals()
		if peers.any() { // most nodes have no peers and need no histograms of them
			k.Peers.collect(ch, peers)
		}
		if batches.any() {
			k.Batches.collect(ch, batches)
		}
		redis := k.Redis.totals()
		if redis.any() {
			k.Redis.collect(ch, redis)
		}
		if scans := k.Scans.totals(); scans.any() {
			k.Scans.collect(ch, scans)
		}
		if db != "" {
			count(ch, descBatched, k.batched.Load(), db)
			if s.cache.Load() != nil {
				count(ch, descCacheHits, k.cacheHits.Load(), db)
				count(ch, descCacheMisses, k.cacheMiss.Load(), db)
			}
			count(ch, descScanned, k.scanned.Load(), db)
			count(ch, descReads, clients.reads+peers.reads+batches.reads+redis.reads, db)
		}
	}
	emit(ch, descInFlight, float64(s.inFlight.value()))
	s.checksums.Collect(ch)
	if f := s.cache.Load(); f != nil {
		emit(ch, descCacheBytes, float64((*f)()))
	}
	var redis RedisState
	if f := s.redis.Load(); f != nil {
		redis = (*f)()
		emit(ch, descRedisConns, float64(redis.Connections))
	}
	if f := s.state.Load(); f != nil {
		st := (*f)()
		st.Refused, st.BadHandshakes = st.Refused+redis.Refused, st.BadHandshakes+redis.BadHandshakes
		st.collect(ch)
	}
}

func (r *Requests) collect(ch chan<- prometheus.Metric, t totals) {
	for i, n := range t.codes {
		if n > 0 {
			count(ch, descRequests, n, r.route, r.db, codeLabel(i))
		}
	}
	count(ch, descBytes, t.bytes, r.route, r.db)
	ch <- histogram(descDuration, &t.buckets, float64(t.nanos)/1e9, r.exemplars.Load(), r.route, r.db)
}

func (st State) collect(ch chan<- prometheus.Metric) {
	emit(ch, descConns, float64(st.Connections))
	count(ch, descRefused, uint64(st.Refused))
	count(ch, descHandshakes, uint64(st.BadHandshakes))
	s := &st.Status
	emit(ch, descDraining, flag(s.Draining))
	collectWaiting(ch, s)
	emit(ch, descSourceError, unixTime(s.SourceErrorSince))
	emit(ch, descRefreshed, unixTime(s.RefreshedAt))
	emit(ch, descStored, float64(s.Stored()))
	for name, db := range s.DBs {
		collectDB(ch, name, db, s.Node)
	}
}

// collectWaiting reports what a node waits for, and whether that keeps it from being ready.
func collectWaiting(ch chan<- prometheus.Metric, s *status.Status) {
	emit(ch, descReady, flag(!s.Draining && len(status.Blocking(s.Waiting)) == 0))
	for _, kind := range status.WaitKinds {
		n := 0
		for _, w := range s.Waiting {
			if w.For == kind {
				n++
			}
		}
		emit(ch, descWaiting, float64(n), string(kind))
	}
}

// collectDB reports the versions of a db on a node.
func collectDB(ch chan<- prometheus.Metric, name string, db status.DB, node string) {
	states := make(map[status.State]int)
	for _, v := range db.Versions {
		if n, here := v.Nodes[node]; here {
			states[n.State]++
		}
	}
	for state, n := range states {
		emit(ch, descVersions, float64(n), name, string(state))
	}
	collectGate(ch, name, db, node)
	current := db.Current(node)
	if current == "" {
		return
	}
	v := db.Versions[current]
	n := v.Nodes[node]
	emit(ch, descVersion, 1, name, current)
	emit(ch, descPartitions, float64(v.NumPartitions), name)
	emit(ch, descMissing, float64(v.MissingPartitions), name)
	emit(ch, descDiverged, flag(n.Diverged), name)
	emit(ch, descUnderreplicated, float64(v.UnderreplicatedPartitions), name)
	emit(ch, descActive, unixTime(n.ActiveAt), name)
	emit(ch, descModified, unixTime(n.LastModified), name)
	emit(ch, descRecords, float64(n.Records), name)
	emit(ch, descDisk, float64(n.Bytes), name)
}

// collectGate reports the rules of the newest version of a db that a node has judged. Of several results of a rule it is
// the one that is farthest from what is allowed.
func collectGate(ch chan<- prometheus.Metric, name string, db status.DB, node string) {
	newest := ""
	for v := range db.Versions {
		if len(db.Versions[v].Nodes[node].Gate) > 0 {
			newest = max(newest, v)
		}
	}
	worst := make(map[string]status.GateCheck)
	for _, c := range db.Versions[newest].Nodes[node].Gate {
		if w, found := worst[c.Rule]; !found || c.Value > w.Value {
			worst[c.Rule] = c
		}
	}
	for rule, c := range worst {
		emit(ch, descGateValue, c.Value, name, rule)
		emit(ch, descGateLimit, c.Limit, name, rule)
	}
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func emit(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func count(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func unixTime(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1e3
}
