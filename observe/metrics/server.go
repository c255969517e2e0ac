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

	inFlight  gauge
	checksums *vector
	state     atomic.Pointer[func() State]
	redis     atomic.Pointer[func() RedisState]

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

func (m *Metrics) newServer() *Server {
	return &Server{
		Status:    newRequests(RouteStatus, ""),
		Health:    newRequests(RouteHealth, ""),
		Invalid:   newRequests(RouteInvalid, ""),
		Unknown:   newKeys(""),
		inFlight:  newGauge(),
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
	s.checksums.drop(name)
}

// Begin counts a request as in flight until End.
func (s *Server) Begin(stripe uint32) { s.inFlight.add(stripe, 1) }

// End ends what Begin began, with the same stripe.
func (s *Server) End(stripe uint32) { s.inFlight.add(stripe, -1) }

// ChecksumFailure counts a damaged block of a db.
func (s *Server) ChecksumFailure(db string) { s.checksums.add(1, db) }

// SetState sets the function that returns the state at a scrape. It is called
// once per scrape and must not block.
func (s *Server) SetState(f func() State) { s.state.Store(&f) }

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
	ofServer families

	requestsTotal = ofServer.counter("sequins_requests_total",
		"Requests answered, by route, db (empty if unknown) and status code.", "route", "db", "code")
	requestDuration = ofServer.gauge("sequins_request_duration_seconds",
		"Time from the end of the request header until the answer is ready; for large values, until the last byte is sent.", "route", "db")
	responseBytes = ofServer.counter("sequins_response_bytes_total",
		"Bytes in the bodies of answers, by route and db.", "route", "db")
	cacheHitsTotal = ofServer.counter("sequins_cache_hits_total",
		"Keys of partitions on other nodes that were answered from the cache.", "db")
	cacheMissesTotal = ofServer.counter("sequins_cache_misses_total",
		"Keys of partitions on other nodes that were not in the cache.", "db")
	blockReads = ofServer.counter("sequins_block_reads_total",
		"Pages read from block files to answer requests.", "db")
	requestsInFlight = ofServer.gauge("sequins_requests_in_flight",
		"Requests in progress.")
	openConns = ofServer.gauge("sequins_connections",
		"Open connections from clients.")
	openRedisConns = ofServer.gauge("sequins_redis_connections",
		"Open connections from clients of the Redis protocol.")
	refusedConns = ofServer.counter("sequins_refused_connections_total",
		"Connections refused because max_connections were open.")
	failedHandshakes = ofServer.counter("sequins_tls_handshakes_failed_total",
		"Failed TLS handshakes with clients and other nodes.")
	nodeReady = ofServer.gauge("sequins_ready",
		"1 if the node should get requests, as /readyz says, else 0.")
	waitingFor = ofServer.gauge("sequins_waiting",
		"What the node waits for, by kind: zookeeper, nodes, disk, source or load.", "for")
	sourceErrorSince = ofServer.gauge("sequins_source_unreachable_since_timestamp_seconds",
		"Since when the databases of the source cannot be listed, in Unix time; 0 while they can.")
	lastRefresh = ofServer.gauge("sequins_last_refresh_timestamp_seconds",
		"When the source was last listed, in Unix time; 0 if never.")
	storedBytes = ofServer.gauge("sequins_store_blocks_bytes",
		"Bytes of the blocks in use in the local store, of all versions.")
	versionsByState = ofServer.gauge("sequins_versions",
		"Versions known to the node, by state.", "db", "state")
	versionInfo = ofServer.gauge("sequins_version_info",
		"1, with the name of the current version.", "db", "version")
	missingPartitions = ofServer.gauge("sequins_version_partitions_missing",
		"Partitions of the current version that no node holds, as far as this node knows.", "db")
	versionDiverged = ofServer.gauge("sequins_version_diverged",
		"1 if the source has other files of the current version than it was loaded from, until this node has loaded it again.", "db")
	underreplicatedPartitions = ofServer.gauge("sequins_version_partitions_underreplicated",
		"Partitions of the current version that some nodes hold, but fewer than replication.", "db")
	activeSince = ofServer.gauge("sequins_version_active_timestamp_seconds",
		"When the current version became active, in Unix time.", "db")
	lastModified = ofServer.gauge("sequins_version_last_modified_timestamp_seconds",
		"When the newest file of the current version was written in the source, in Unix time.", "db")
	versionRecords = ofServer.gauge("sequins_version_records",
		"Records of the current version on this node.", "db")
	versionBytes = ofServer.gauge("sequins_version_bytes",
		"Bytes on disk of the current version on this node.", "db")

	buildInfo  = ofServer.gauge("sequins_build_info", "1, with the versions of sequins and of Go.", "version", "goversion")
	configGood = ofServer.gauge("sequins_config_last_reload_successful",
		"1 if the last read of the configuration, at the start or at SIGHUP, and of the tokens, succeeded; else 0, and the previous ones are in use.")
	certificateExpiry = ofServer.gauge("sequins_certificate_expiry_timestamp_seconds", "When the certificate of the node expires, in Unix time.")
	storeFree         = ofServer.gauge("sequins_store_free_bytes", "Free bytes of the local store's file system that sequins may use.")

	zooKeeperConnected = ofServer.gauge("sequins_zookeeper_connected", "1 if the node has a session with ZooKeeper, else 0.")
	zooKeeperSessions  = ofServer.counter("sequins_zookeeper_sessions_total",
		"Sessions with ZooKeeper since the start. Each one but the first replaced an expired one.")
	zooKeeperZnodes = ofServer.gauge("sequins_zookeeper_znodes",
		"Znodes of this node: published, or pending if ZooKeeper does not have their current form yet.", "state")
	clusterNodes = ofServer.gauge("sequins_cluster_nodes",
		"Nodes that hold data, including this one and without routers, as seen by this node.")
	clusterProblems = ofServer.gauge("sequins_cluster_problems",
		"Settings of other nodes that differ from those of this node, so that they divide the data differently.")
	clusterDifferences = ofServer.gauge("sequins_cluster_differences", "Settings that the nodes should have alike, and have not.")
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) { ofServer.describe(ch) }

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
		if db == "" {
			continue
		}
		if hits, misses := k.CacheCounts(); hits+misses > 0 {
			cacheHitsTotal.emit(ch, float64(hits), db)
			cacheMissesTotal.emit(ch, float64(misses), db)
		}
		blockReads.emit(ch, float64(reads), db)
	}
	requestsInFlight.emit(ch, float64(s.inFlight.value()))
	var redis RedisState
	if f := s.redis.Load(); f != nil {
		redis = (*f)()
		openRedisConns.emit(ch, float64(redis.Connections))
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
			requestsTotal.emit(ch, float64(n), r.route, r.db, codeLabel(i))
		}
	}
	responseBytes.emit(ch, float64(t.bytes), r.route, r.db)
	ch <- histogram(requestDuration.desc, &t.buckets, float64(t.nanos)/1e9, r.exemplars.Load(), r.route, r.db)
}

func (st State) collect(ch chan<- prometheus.Metric) {
	openConns.emit(ch, float64(st.Connections))
	refusedConns.emit(ch, float64(st.Refused))
	failedHandshakes.emit(ch, float64(st.BadHandshakes))
	s := &st.Status
	buildInfo.emit(ch, 1, s.Build, runtime.Version())
	configGood.emit(ch, flag(s.ReloadError == "" && s.TokensError == ""))
	if !s.Certificate.Expires.IsZero() {
		certificateExpiry.emit(ch, unixTime(s.Certificate.Expires))
	}
	if s.Disk.Bytes > 0 {
		storeFree.emit(ch, float64(s.Disk.Free))
	}
	collectCluster(ch, s)
	collectWaiting(ch, s)
	sourceErrorSince.emit(ch, unixTime(s.SourceErrorSince))
	lastRefresh.emit(ch, unixTime(s.RefreshedAt))
	storedBytes.emit(ch, float64(s.Stored()))
	for name, db := range s.DBs {
		collectDB(ch, name, db, s.Node)
	}
}

// collectCluster reports the state of a node in its cluster.
func collectCluster(ch chan<- prometheus.Metric, s *status.Status) {
	z := s.ZooKeeper
	if z == nil {
		return
	}
	zooKeeperConnected.emit(ch, flag(z.Connected))
	zooKeeperSessions.emit(ch, float64(max(0, z.Sessions)))
	zooKeeperZnodes.emit(ch, float64(z.Published), "published")
	zooKeeperZnodes.emit(ch, float64(z.Pending), "pending")
	clusterNodes.emit(ch, float64(z.Nodes))
	clusterProblems.emit(ch, float64(z.Problems))
	clusterDifferences.emit(ch, float64(len(status.Faults(s.Differences))))
}

// collectWaiting reports what a node waits for, and whether that keeps it from being ready.
func collectWaiting(ch chan<- prometheus.Metric, s *status.Status) {
	nodeReady.emit(ch, flag(!s.Draining && len(status.Blocking(s.Waiting)) == 0))
	for _, kind := range status.WaitKinds {
		n := 0
		for _, w := range s.Waiting {
			if w.For == kind {
				n++
			}
		}
		waitingFor.emit(ch, float64(n), string(kind))
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
		versionsByState.emit(ch, float64(n), name, string(state))
	}
	current := db.Current(node)
	if current == "" {
		return
	}
	v := db.Versions[current]
	n := v.Nodes[node]
	versionInfo.emit(ch, 1, name, current)
	missingPartitions.emit(ch, float64(v.MissingPartitions), name)
	versionDiverged.emit(ch, flag(n.Diverged), name)
	underreplicatedPartitions.emit(ch, float64(v.UnderreplicatedPartitions), name)
	activeSince.emit(ch, unixTime(n.ActiveAt), name)
	lastModified.emit(ch, unixTime(n.LastModified), name)
	versionRecords.emit(ch, float64(n.Records), name)
	versionBytes.emit(ch, float64(n.Bytes), name)
}
