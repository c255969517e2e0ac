package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The valid words of keys. Their meaning is defined in the packages blocks, shard, cluster and
// source/hdfs.
var (
	Compressions = []string{"none", "snappy", "lz4", "zstd"}
	Partitioners = []string{"auto", "string", "hadoop", "spark", "cascading"}

	Assignments = []string{"round_robin", "balanced"}
	Roles       = []string{"node", "router"}

	DataTransferProtections = []string{"authentication", "privacy"}

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

	// maxBandwidth is the largest max_download_bandwidth_mb_per_second: 1 TiB/s, which fits an integer
	// in bytes.
	maxBandwidth = 1 << 20

	// Weights outside this range are considered mistakes.
	minWeight, maxWeight = 0.01, 1000.0

	maxDBName = 255 // bytes
)

var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

// The length is checked separately: a counted repetition would compile to a large pattern at each
// start.
var dbName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Validate checks the values and their combinations. The error is a Problems without lines. Load calls
// Validate and adds lines.
func (c *Config) Validate() error {
	found, _ := c.check()
	if len(found) == 0 {
		return nil
	}
	problems := make(Problems, len(found))
	for i, f := range found {
		problems[i] = &Problem{Key: f.key, Reason: f.reason}
	}
	return problems
}

type finding struct{ key, reason string }

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
	k.bandwidth("scrub_mb_per_second", c.ScrubMBPerSecond)
	k.header("content_type", c.ContentType)
	k.oneOf("partitioner", c.Partitioner, Partitioners)
	k.oneOf("storage.compression", c.Storage.Compression, Compressions)
	k.blockSize("storage.block_size", c.Storage.BlockSize)
	k.atLeast("load.memory", int64(c.Load.Memory), MinLoadMemory)
	if least := c.minMemoryLimit(); c.Load.MemoryLimit != 0 && c.Load.MemoryLimit < least {
		k.problem("load.memory_limit", "must be 0 or, with this load.memory and on this machine, at least %d, not %d", least, c.Load.MemoryLimit)
	}
	k.fits("load.memory", c.Load.Memory, machineMemory())
	k.fits("load.memory_limit", c.Load.MemoryLimit, machineMemory())
	k.atLeast("batch.max_keys", int64(c.Batch.MaxKeys), 1)
	k.atLeast("scan.max_concurrent", int64(c.Scan.MaxConcurrent), 1)
	k.atLeast("batch.max_bytes", int64(c.Batch.MaxBytes), MinBatchBytes)
	k.fits("batch.max_bytes", c.Batch.MaxBytes, machineMemory())
	k.cache(c)
	k.s3(&c.S3)
	k.hdfs(&c.HDFS)
	k.sharding(&c.Sharding)
	k.secret(&c.Sharding, c.Auth.TokensFile)
	k.zk(&c.ZK, c.Sharding.Enabled)
	k.oneOf("log.level", c.Log.Level, LogLevels)
	k.oneOf("log.format", c.Log.Format, LogFormats)
	k.tls(&c.TLS)
	k.tracing(&c.Tracing)
	k.redis(c)
	k.debug(c)
	k.agent("datadog.url", c.Datadog.URL)
	for _, name := range slices.Sorted(maps.Keys(c.DB)) {
		k.db(join("db", name), name, c.DB[name], c.allDBs())
	}
	return k.problems, k.warnings
}

func (k *checker) problem(key, format string, args ...any) {
	k.problems = append(k.problems, finding{key, fmt.Sprintf(format, args...)})
}

func (k *checker) warn(key, format string, args ...any) {
	k.warnings = append(k.warnings, finding{key, fmt.Sprintf(format, args...)})
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
		k.warnings = append(k.warnings, finding{key, fmt.Sprintf("%s is more than the %s of memory of this machine", v, memory)})
	}
}

func (k *checker) bandwidth(key string, v int) {
	k.atLeast(key, int64(v), 0)
	if v > maxBandwidth {
		k.problem(key, "must be at most %d, not %d", maxBandwidth, v)
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
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		k.problem(key, "%q is not an address of the form host:port", v)
		return
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		k.problem(key, "%q has no valid port", v)
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

func (k *checker) blockSize(key string, v int) {
	k.atLeast(key, int64(v), MinBlockSize)
	if v > MaxBlockSize {
		k.warnings = append(k.warnings, finding{key, fmt.Sprintf("pages have at most %d bytes, and get them", MaxBlockSize)})
	}
}

// source checks the form of the source; the node checks whether it exists.
func (k *checker) source(key, v string) {
	if v == "" {
		k.problem(key, "is not set: name the directory or URL where the data is, here or with --source")
		return
	}
	scheme, rest, isURL := strings.Cut(v, "://")
	if !isURL {
		if !filepath.IsAbs(v) {
			k.problem(key, "%q is not an absolute path", v)
		}
		return
	}
	u, err := url.Parse(v)
	switch {
	case err != nil:
		k.problem(key, "%q is not a valid URL", v)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.problem(key, "%s://%s has more than a host and a path", scheme, u.Host+u.Path)
	case scheme == "file" && u.Host != "":
		k.problem(key, "%q names a host; a local path has three slashes: file:///%s", v, rest)
	case scheme == "file" && u.Path == "":
		k.problem(key, "%q has no path", v)
	case scheme == "s3" && u.Host == "":
		k.problem(key, "%q has no bucket: s3://bucket/path", v)
	case !slices.Contains([]string{"file", "hdfs", "s3"}, scheme):
		k.problem(key, "%q is of none of the kinds file://, hdfs://, s3://", v)
	}
}

// localSource returns the path of a source in the local file system, and whether it is one.
func (c *Config) localSource() (string, bool) {
	if !strings.Contains(c.Source, "://") {
		return c.Source, true
	}
	u, err := url.Parse(c.Source)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}

// storeData is the subdirectory of the local store in which the node deletes files.
const storeData = "data"

// store checks the local store. It must not be inside the source, which would list it, and the source
// must not be inside storeData. A source elsewhere in the local store, as in older files, is safe.
func (k *checker) store(c *Config) {
	const key = "local_store"
	if !filepath.IsAbs(c.LocalStore) {
		k.problem(key, "%q is not an absolute path", c.LocalStore)
		return
	}
	source, local := c.localSource()
	if !local || !filepath.IsAbs(source) {
		return
	}
	if within(source, c.LocalStore) {
		k.problem(key, "%q is within the source, %q", c.LocalStore, source)
	} else if data := filepath.Join(c.LocalStore, storeData); within(data, source) {
		k.problem("source", "%q is within the local store's %q, in which everything else is deleted", source, data)
	} else if within(c.LocalStore, source) {
		k.warn("source", "%q is within the local store, %q; a directory of its own is safer", source, c.LocalStore)
	}
}

// within reports whether path is dir or below it. Both are absolute.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (k *checker) s3(s *S3) {
	k.atLeast("s3.max_retries", int64(s.MaxRetries), 0)
	if s.AccessKeyID != "" && s.SecretAccessKey == "" {
		k.problem("s3.access_key_id", "is set, and secret_access_key is not")
	}
	if s.SecretAccessKey != "" && s.AccessKeyID == "" {
		k.problem("s3.secret_access_key", "is set, and access_key_id is not")
	}
	u, err := url.Parse(s.Endpoint)
	if s.Endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		k.problem("s3.endpoint", "%q is not a URL of the form https://host:port", s.Endpoint)
	}
}

func (k *checker) hdfs(h *HDFS) {
	if h.Keytab != "" && h.Principal == "" {
		k.problem("hdfs.keytab", "is set, and principal is not")
	}
	if h.Principal != "" && h.Keytab == "" {
		k.problem("hdfs.principal", "is set, and keytab is not")
	}
	if h.CredentialCache != "" && h.Keytab != "" {
		k.problem("hdfs.credential_cache", "is set, and so is keytab")
	}
	if h.DataTransferProtection != "" {
		k.oneOf("hdfs.data_transfer_protection", h.DataTransferProtection, DataTransferProtections)
	}
	k.positive("hdfs.timeout", h.Timeout)
	k.positive("hdfs.retry_for", h.RetryFor)
}

func (k *checker) sharding(s *Sharding) {
	k.atLeast("sharding.replication", int64(s.Replication), 1)
	k.atLeast("sharding.min_replication", int64(s.MinReplication), 1)
	if s.MinReplication > s.Replication && s.Replication >= 1 {
		k.problem("sharding.min_replication", "%d is more than sharding.replication, %d", s.MinReplication, s.Replication)
	}
	k.atLeast("sharding.max_replication", int64(s.MaxReplication), 0)
	k.notNegative("sharding.time_to_converge", s.TimeToConverge)
	k.positive("sharding.proxy_timeout", s.ProxyTimeout)
	k.notNegative("sharding.proxy_stage_timeout", s.ProxyStageTimeout)
	k.atLeast("sharding.min_nodes", int64(s.MinNodes), 0)
	k.oneOf("sharding.assignment", s.Assignment, Assignments)
	k.oneOf("sharding.role", s.Role, Roles)
	k.notNegative("sharding.heal_after", s.HealAfter)
	if !(s.Weight >= minWeight && s.Weight <= maxWeight) {
		k.problem("sharding.weight", "must be from %v to %v, not %v", minWeight, maxWeight, s.Weight)
	}
	if !clusterName.MatchString(s.ClusterName) {
		k.problem("sharding.cluster_name", "%q is not the name of a cluster: letters, digits, and . _ - / between them", s.ClusterName)
	}
	// They become part of names in ZooKeeper, between separators.
	for key, v := range map[string]string{"advertised_hostname": s.AdvertisedHostname, "shard_id": s.ShardID} {
		if strings.ContainsAny(v, "/@\x00") {
			k.problem("sharding."+key, "%q must not have a / or @ in it", v)
		}
	}
}

// CheckSecret returns an error if a string cannot be the secret of a cluster: it is sent in a header,
// and must be hard to guess.
func CheckSecret(s string) error {
	if len(s) < 16 || len(s) > 512 || !secret.MatchString(s) {
		return errors.New("is not 16 to 512 letters, digits and -._~+/=")
	}
	return nil
}

var secret = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]+$`)

// secret checks the secret of the cluster. It is required with tokens, because clients' tokens are not
// forwarded.
func (k *checker) secret(s *Sharding, tokens string) {
	if s.Secret != "" {
		if err := CheckSecret(s.Secret); err != nil {
			k.problem("sharding.secret", "%v", err) // the error does not contain the secret
		}
	}
	switch {
	case s.Secret != "" && s.SecretFile != "":
		k.problem("sharding.secret_file", "is set, and so is secret")
	case s.Enabled && tokens != "" && s.Secret == "" && s.SecretFile == "":
		k.problem("sharding.secret", "is not set, and auth.tokens_file is: nodes do not pass tokens on, and need a secret to ask each other")
	}
}

func (k *checker) zk(z *ZK, enabled bool) {
	k.positive("zk.connect_timeout", z.ConnectTimeout)
	k.positive("zk.session_timeout", z.SessionTimeout)
	if enabled && len(z.Servers) == 0 {
		k.problem("zk.servers", "is empty, and sharding is enabled")
	}
	if slices.Contains(z.Servers, "") {
		k.problem("zk.servers", "has an empty address")
	}
	if user, _, ok := strings.Cut(z.Auth, ":"); z.Auth != "" && (!ok || user == "") {
		k.problem("zk.auth", "is not of the form user:password")
	}
	switch {
	case z.TLSCertificate != "" && z.TLSKey == "":
		k.problem("zk.tls_certificate", "is set, and tls_key is not")
	case z.TLSKey != "" && z.TLSCertificate == "":
		k.problem("zk.tls_key", "is set, and tls_certificate is not")
	}
	if z.TLSCA != "" && !z.TLS {
		k.problem("zk.tls_ca", "is set, and tls is not")
	}
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
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		k.problem("tracing.otlp_endpoint", "%q is not a URL of the form http://host:port", t.OTLPEndpoint)
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

// notTwice checks that two listeners have different addresses.
func (k *checker) notTwice(key, address, other, otherAddress string) {
	if _, port, _ := net.SplitHostPort(address); address == otherAddress && port != "0" {
		k.problem(key, "%q is the address of %s too", address, other)
	}
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

// db checks the values of [db.<name>] that differ from those for all databases.
func (k *checker) db(key, name string, db, all DB) {
	if len(name) > maxDBName || !dbName.MatchString(name) || slices.Contains([]string{"healthz", "livez", "readyz"}, name) {
		k.problem(key, "%q cannot be the name of a database", name)
	}
	if db.ContentType != all.ContentType {
		k.header(key+".content_type", db.ContentType)
	}
	if db.Partitioner != all.Partitioner {
		k.oneOf(key+".partitioner", db.Partitioner, Partitioners)
	}
	if db.Compression != all.Compression {
		k.oneOf(key+".compression", db.Compression, Compressions)
	}
	if db.BlockSize != all.BlockSize {
		k.blockSize(key+".block_size", db.BlockSize)
	}
	if db.KeepVersions != all.KeepVersions {
		k.atLeast(key+".keep_versions", int64(db.KeepVersions), 1)
	}
	if db.Value != "" && db.Key == "" {
		k.problem(key+".value", "is set, and key is not")
	}
}
