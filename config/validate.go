package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sequins/turns"
)

// The valid words of keys. Their meaning is defined in the packages blocks, shard, cluster, and server.
var (
	Compressions = []string{"none", "snappy", "lz4", "zstd"}
	Partitioners = []string{"auto", "string", "hadoop", "spark", "cascading", "murmur3", "murmur3-int", "murmur3-long", "kafka",
		"hive", "hive-int", "hive-long", "hive-murmur3", "hive-murmur3-int", "hive-murmur3-long"}

	Assignments = []string{"round_robin", "balanced"}
	Roles       = []string{"node", "router"}

	Codings = []string{"zstd", "gzip"}

	LogLevels  = []string{"debug", "info", "warn", "error"}
	LogFormats = []string{"text", "json"}
)

const (
	// MinBlockSize is the smallest block_size, in bytes.
	MinBlockSize = 256
	// MaxBlockSize is the largest page size, in bytes; larger values are reduced to it.
	MaxBlockSize = 60 << 10
	// MinLoadMemory is the smallest load.memory, in bytes.
	MinLoadMemory = 1 << 20

	// maxRate is the largest bandwidth.
	maxRate Rate = 1 << 40

	maxDBName = 255 // bytes
)

// The length is checked separately: a counted repetition would compile to a large pattern at each
// start.
var dbName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._=+,@:-]*$`)

// Validate checks the values and their combinations. The error is a Problems without lines. Load calls
// Validate and adds lines.
func (c *Config) Validate() error {
	found, _ := c.check()
	if len(found) == 0 {
		return nil
	}
	problems := make(Problems, len(found))
	for i, f := range found {
		problems[i] = &Problem{Key: f.key, Reason: fmt.Sprintf(f.format, f.args...)}
	}
	return problems
}

// finding is a problem or a warning of a key. It is formatted later, because the decoder hides values of variables in it.
type finding struct {
	key, format string
	args        []any
}

// checker collects problems and warnings.
type checker struct{ problems, warnings []finding }

func (c *Config) check() (problems, warnings []finding) {
	var k checker
	k.source("source", c.Source)
	k.store(c)
	k.address("bind", c.Bind)
	k.atLeast("max_connections", int64(c.MaxConnections), 0)
	k.atLeast("max_parallel_loads", int64(c.MaxParallelLoads), 0)
	k.bandwidth("max_download_bandwidth_mb_per_second", c.MaxDownloadBandwidth)
	k.notNegative("throttle_loads", c.ThrottleLoads)
	k.notNegative("refresh_period", c.RefreshPeriod)
	k.notNegative("settle", c.Settle)
	k.notNegative("version_remove_timeout", c.VersionRemoveTimeout)
	k.atLeast("keep_versions", int64(c.KeepVersions), 1)
	k.positive("db_remove_timeout", c.DBRemoveTimeout)
	k.notNegative("shutdown_delay", c.ShutdownDelay)
	k.notNegative("scrub_period", c.ScrubPeriod)
	k.header("content_type", c.ContentType)
	k.oneOf("partitioner", c.Partitioner, Partitioners)
	k.oneOf("storage.compression", c.Storage.Compression, Compressions)
	k.blockSize("storage.block_size", c.Storage.BlockSize)
	k.atLeast("load.memory", int64(c.Load.Memory), MinLoadMemory)
	if least := c.minMemoryLimit(); c.Load.MemoryLimit != 0 && c.Load.MemoryLimit < least {
		k.problem("load.memory_limit", "must be 0 or, with this load.memory and on this machine, at least %d, not %d", least, c.Load.MemoryLimit)
	}
	k.atLeast("load.min_free_disk", int64(c.Load.MinFreeDisk), 0)
	k.windows("load.window", c.Load.Window)
	k.peerBandwidth(&c.Load)
	k.fits("load.memory", c.Load.Memory, machineMemory())
	k.fits("load.memory_limit", c.Load.MemoryLimit, machineMemory())
	k.atLeast("batch.max_bytes", int64(c.Batch.MaxBytes), MinBatchBytes)
	k.fits("batch.max_bytes", c.Batch.MaxBytes, machineMemory())
	k.cache(c)
	k.s3(&c.S3)
	k.azure(&c.Azure)
	k.hdfs(&c.HDFS)
	k.sharding(&c.Sharding)
	k.secret(&c.Sharding, c.Auth.TokensFile)
	k.zk(&c.ZK, c.Sharding.Enabled)
	k.oneOf("log.level", c.Log.Level, LogLevels)
	k.oneOf("log.format", c.Log.Format, LogFormats)
	k.tls(&c.TLS)
	k.http(&c.HTTP)
	k.tracing(&c.Tracing)
	k.redis(c)
	k.debug(c)
	k.agent("datadog.url", c.Datadog.URL)
	k.gate("gate", &c.Gate)
	k.events(&c.Events)
	for _, name := range slices.Sorted(maps.Keys(c.DB)) {
		k.db(join("db", name), name, c.DB[name], c.allDBs())
	}
	k.plausible(c)
	return k.problems, k.warnings
}

// windows checks times at which loads may begin.
func (k *checker) windows(key, text string) {
	if _, err := turns.ParseWindows(text); err != nil {
		k.problem(key, "%v", err)
	}
}

func (k *checker) problem(key, format string, args ...any) {
	k.problems = append(k.problems, finding{key, format, args})
}

func (k *checker) warn(key, format string, args ...any) {
	k.warnings = append(k.warnings, finding{key, format, args})
}

func (k *checker) atLeast(key string, v, least int64) {
	if v < least {
		k.problem(key, "must be at least %d, not %d", least, v)
	}
}

// fits warns if a size exceeds the memory of the machine. This is not a problem, because a
// configuration can be checked on another machine.
func (k *checker) fits(key string, v, memory Size) {
	if memory > 0 && v > memory {
		k.warn(key, "%s is more than the %s of memory of this machine or its container", v, memory)
	}
}

func (k *checker) bandwidth(key string, v Rate) {
	if v < 0 || v > maxRate {
		k.problem(key, "must be at least 0 and at most %s, not %s", maxRate, v)
	}
}

// PeerStreams is how many blocks a node gives to other nodes at a time, and how many it receives.
const PeerStreams = 2

// leastPeerRate is the least bandwidth of copied blocks: nodes end copies of a block that are slower than 64 KiB/s.
const leastPeerRate Rate = PeerStreams * 128 << 10

func (k *checker) peerBandwidth(l *LoadKeys) {
	const key = "load.peer_bandwidth_mb_per_second"
	k.bandwidth(key, l.PeerBandwidth)
	if l.PeerBandwidth > 0 && l.PeerBandwidth < leastPeerRate {
		k.problem(key, "must be 0 or at least %s, or copies between nodes end as too slow; use from_peers = false for none", leastPeerRate)
	}
}

func (k *checker) notNegative(key string, v time.Duration) {
	if v < 0 {
		k.problem(key, "must not be negative, as %s is", v)
	}
}

func (k *checker) positive(key string, v time.Duration) {
	if v <= 0 {
		k.problem(key, "must be more than 0, not %s", v)
	}
}

func (k *checker) oneOf(key, v string, words []string) {
	if !slices.Contains(words, v) {
		k.problem(key, "%q is none of %s", v, strings.Join(words, ", "))
	}
}

// address checks a host:port to listen on. The port may be 0 or a service name.
func (k *checker) address(key, v string) {
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		k.problem(key, "%q is not an address of the form host:port", shownURL(v))
		return
	}
	if host != "" && !isHost(host) {
		k.problem(key, "%q has no valid host", shownURL(v))
		return
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		k.problem(key, "%q has no valid port", shownURL(v))
	}
}

// header checks a value for a response header.
func (k *checker) header(key, v string) {
	for _, b := range []byte(v) {
		if b < ' ' || b > '~' {
			k.problem(key, "%q has characters that do not belong into a header", v)
			return
		}
	}
}

func (k *checker) blockSize(key string, v Size) {
	k.atLeast(key, int64(v), MinBlockSize)
	if v > MaxBlockSize {
		k.warn(key, "pages have at most %d bytes, and get them", MaxBlockSize)
	}
}

// events checks [events]. The problems show neither the URL, which may contain a password, nor the secret.
func (k *checker) events(e *Events) {
	if e.Webhook != "" {
		if err := CheckWebhook(e.Webhook); err != nil {
			k.problem("events.webhook", "%v", err)
		}
	}
	if e.Webhook != "" && e.WebhookFile != "" {
		k.problem("events.webhook_file", "is set, and so is webhook")
	}
	if e.Secret != "" {
		if err := CheckSecret(e.Secret); err != nil {
			k.problem("events.secret", "%v", err)
		}
	}
	if e.Secret != "" && e.SecretFile != "" {
		k.problem("events.secret_file", "is set, and so is secret")
	}
}

// CheckWebhook returns an error, which does not contain the URL, if a string is not the URL of a webhook.
func CheckWebhook(s string) error {
	if !isHTTP(s) {
		return errors.New("is not an http:// or https:// URL")
	}
	return nil
}

func (k *checker) tls(t *TLS) {
	switch {
	case t.Certificate != "" && t.Key == "":
		k.problem("tls.certificate", "is set, and key is not")
	case t.Key != "" && t.Certificate == "":
		k.problem("tls.key", "is set, and certificate is not")
	case t.CA != "" && t.Certificate == "":
		k.problem("tls.ca", "is set, and certificate is not")
	case t.ClientCA != "" && t.Certificate == "":
		k.problem("tls.client_ca", "is set, and certificate is not")
	case t.HTTP2 && t.Certificate == "":
		k.problem("tls.http2", "is set, and certificate is not")
	}
}

func (k *checker) tracing(t *Tracing) {
	u, err := url.Parse(t.OTLPEndpoint)
	switch {
	case t.OTLPEndpoint == "":
	case err != nil || !isHTTP(t.OTLPEndpoint):
		k.problem("tracing.otlp_endpoint", "%q is not a URL of the form http://host:port", shownURL(t.OTLPEndpoint))
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1/traces"):
		k.problem("tracing.otlp_endpoint", "%q ends with /v1/traces, which is added to it", shownURL(t.OTLPEndpoint))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.problem("tracing.otlp_endpoint", "has more than host, port and path; what else has to be sent is set by OTEL_EXPORTER_OTLP_HEADERS in the environment")
	}
	if !(t.Sample >= 0 && t.Sample <= 1) {
		k.problem("tracing.sample", "must be from 0 to 1, not %v", t.Sample)
	}
}

// cache checks the size of the cache.
func (k *checker) cache(c *Config) {
	n := c.Cache.Bytes
	if n != 0 {
		k.atLeast("cache.bytes", int64(n), MinCacheBytes)
	}
	k.fits("cache.bytes", n, machineMemory())
	if n != 0 && !c.Sharding.Enabled {
		k.warn("cache.bytes", "has no effect: a single node (sharding.enabled = false) asks no other nodes")
	}
}

func (k *checker) redis(c *Config) {
	k.notNegative("redis.idle_timeout", c.Redis.IdleTimeout)
	if c.Redis.Bind != "" {
		k.address("redis.bind", c.Redis.Bind)
		k.notTwice("redis.bind", c.Redis.Bind, "bind", c.Bind)
	}
}

// notTwice checks that two listeners do not need the same address.
func (k *checker) notTwice(key, address, other, otherAddress string) {
	host, port, err := net.SplitHostPort(address)
	otherHost, otherPort, otherErr := net.SplitHostPort(otherAddress)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return
	}
	if host == otherHost || isEvery(host) || isEvery(otherHost) {
		k.problem(key, "%q is the address of %s too", address, other)
	}
}

// isEvery reports whether a host to listen on is every interface.
func isEvery(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

func (k *checker) debug(c *Config) {
	if c.Debug.Bind != "" {
		k.address("debug.bind", c.Debug.Bind)
		k.notTwice("debug.bind", c.Debug.Bind, "bind", c.Bind)
		k.notTwice("debug.bind", c.Debug.Bind, "redis.bind", c.Redis.Bind)
	}
	if c.Debug.RequestLogEnable && c.Debug.RequestLogFile == "" {
		k.problem("debug.request_log_file", "is empty, and request_log_enable is set")
	}
	k.atLeast("debug.request_log_sample", int64(c.Debug.RequestLogSample), 1)
}

// agent checks the address of a DogStatsD agent.
func (k *checker) agent(key, v string) {
	path, socket := strings.CutPrefix(v, "unix://")
	switch {
	case socket && !filepath.IsAbs(path):
		k.problem(key, "%q is not unix:// and an absolute path", v)
	case v != "" && !socket:
		k.address(key, v)
	}
}
