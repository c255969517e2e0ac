// Package config defines sequins.conf: its keys, their defaults, and which values are valid.
//
// The struct Config is the list of keys. A field with a toml tag is a key, and its other tags say the rest:
//
//	default   its value if it is not set, as in a file; arrays are written with commas
//	reload    SIGHUP changes the key in a running node
//	secret    its value is not shown, and can be in a file: <key>_file names it, see secrets.go
//	file      its value can be in a file, too
//	alike     all nodes of a cluster should have the same value
//	required  it must not be empty
//	needs     keys of the same table that must be set if it is
//	min, max  limits of a number, a size, a rate or a duration; zero allows 0 beside them
//	oneof     the valid words
//	form      what a text must be, see forms.go
//	fits      a size that should fit into memory
//
// keys.go lists keys of older files that are accepted and ignored. Load reads a file in five steps: go-toml parses it into a tree, a
// second parser finds the line of each key (position.go), variables of the environment and flags of the command line are put into the
// tree (environ.go, override.go), decode.go walks tree and struct together and reports every key that is unknown or has a wrong type,
// and rules.go and validate.go check the values: each by its tags, and then those that depend on each other. All problems are
// collected, each with its place, and reported together. Load reads no other file, so that a configuration can be checked on a
// different machine; ReadSecrets reads those that it names.
package config

import (
	"reflect"
	"runtime"
	"time"
)

// Config is a parsed sequins.conf. Its zero value is not valid: start from Default.
type Config struct {
	// Source is the location of the data: an absolute path, or a file://, hdfs://, s3://, gs:// or abfss:// URL, or one with
	// another scheme of Hadoop's file systems for S3 and Azure. It is required.
	Source string `toml:"source" required:"yes" form:"source" alike:"yes"`
	// Bind is the address (host:port) to listen on.
	Bind string `toml:"bind" default:"0.0.0.0:9599" form:"address"`
	// MaxConnections limits the open connections of clients and other nodes; 0 means half of the
	// process's limit of open files, but at most 262144.
	MaxConnections int `toml:"max_connections" min:"0"`
	// LocalStore is the absolute path of the directory for blocks.
	LocalStore string `toml:"local_store" default:"/var/sequins/" form:"path"`
	// MaxParallelLoads limits how many databases load at the same time; 0 means ten.
	MaxParallelLoads int `toml:"max_parallel_loads" min:"0"`
	// ThrottleLoads is the pause per loaded record; 0 disables it.
	ThrottleLoads time.Duration `toml:"throttle_loads" min:"0s" reload:"yes"`
	// RefreshPeriod is the interval of listing the source; with 0 only SIGHUP does.
	RefreshPeriod time.Duration `toml:"refresh_period" min:"0s" reload:"yes"`
	// RequireSuccessFile makes versions without a _SUCCESS file incomplete: true, false or auto.
	RequireSuccessFile Require `toml:"require_success_file" default:"auto" reload:"yes" alike:"yes"`
	// Settle is the time for which a version must be unchanged between two listings unless one shows that it is complete;
	// with 0 one listing is enough.
	Settle time.Duration `toml:"settle" default:"30s" min:"0s" reload:"yes" alike:"yes"`
	// ContentType is the media type of values; empty means application/octet-stream.
	ContentType string `toml:"content_type" form:"header" reload:"yes" alike:"yes"`
	// Partitioner is the function that partitions data files: one of Partitioners.
	Partitioner string `toml:"partitioner" default:"auto" oneof:"auto string hadoop spark cascading murmur3 murmur3-int murmur3-long kafka hive hive-int hive-long hive-murmur3 hive-murmur3-int hive-murmur3-long" reload:"yes" alike:"yes"`
	// MaxDownloadBandwidth limits reads of the node from the source; 0 is unlimited.
	MaxDownloadBandwidth Rate `toml:"max_download_bandwidth_mb_per_second" min:"0" max:"1TiB/s" reload:"yes"`
	// VersionRemoveTimeout is how long a replaced version is kept after its last request.
	VersionRemoveTimeout time.Duration `toml:"version_remove_timeout" default:"10m" min:"0s" reload:"yes" alike:"yes"`
	// KeepVersions is how many versions stay on the disk and open, with the one that is served.
	KeepVersions int `toml:"keep_versions" default:"1" min:"1" reload:"yes" alike:"yes"`
	// DBRemoveTimeout is how long a database is served after it has disappeared from the source.
	DBRemoveTimeout time.Duration `toml:"db_remove_timeout" default:"1h" min:"1ms" reload:"yes" alike:"yes"`
	// ShutdownDelay is how long requests are served after SIGTERM while /readyz fails; with 0 the node
	// stops immediately.
	ShutdownDelay time.Duration `toml:"shutdown_delay" min:"0s"`
	// ScrubPeriod is the interval of reading every block to find damage; 0 disables it.
	ScrubPeriod time.Duration `toml:"scrub_period" min:"0s"`

	Storage  Storage  `toml:"storage"`
	Load     LoadKeys `toml:"load"`
	S3       S3       `toml:"s3"`
	Azure    Azure    `toml:"azure"`
	HDFS     HDFS     `toml:"hdfs"`
	Sharding Sharding `toml:"sharding"`
	ZK       ZK       `toml:"zk"`
	Log      Log      `toml:"log"`
	TLS      TLS      `toml:"tls"`
	Auth     Auth     `toml:"auth"`
	HTTP     HTTP     `toml:"http"`
	Batch    Batch    `toml:"batch"`
	Redis    Redis    `toml:"redis"`
	Tracing  Tracing  `toml:"tracing"`
	Debug    Debug    `toml:"debug"`
	Datadog  Datadog  `toml:"datadog"`

	Events Events `toml:"events"`
	// Gate holds the rules that versions of all databases must keep.
	Gate Gate `toml:"gate"`

	// DB holds the databases with a table [db.<name>]. Each is complete, with defaults from the rest of
	// the file. Use ForDB to read it.
	DB map[string]DB `toml:"db" reload:"yes"`

	// Files has the paths of the keys that are given as <key>_file, by key; ReadSecrets reads them.
	Files map[string]string `toml:"-"`
}

// Storage is [storage]: the format of new blocks. Existing blocks are not changed.
type Storage struct {
	// Compression is the compression of blocks: fsst, zstd or none; snappy, which Stripe's sequins knows, is read as fsst.
	Compression string `toml:"compression" default:"fsst" oneof:"fsst none zstd snappy" reload:"yes" alike:"yes"`
	// BlockSize is the size of a page before compression.
	BlockSize Size `toml:"block_size" default:"4096" min:"256B" reload:"yes" alike:"yes"`
}

// Batch is [batch]: requests for several keys.
type Batch struct {
	// MaxBytes limits the bytes of the keys of one request, and those of the values of its answer.
	MaxBytes Size `toml:"max_bytes" default:"64MiB" min:"128KiB" fits:"memory" alike:"yes"`
}

// Redis is [redis]: the listener for clients of Redis.
type Redis struct {
	// Bind is the address (host:port) to listen on; empty disables it.
	Bind string `toml:"bind" form:"address"`
	// IdleTimeout is how long a connection may be idle; 0 means no limit.
	IdleTimeout time.Duration `toml:"idle_timeout" default:"10m" min:"0s"`
}

// LoadKeys is [load].
type LoadKeys struct {
	// Memory limits the memory of the sorts of one load.
	Memory Size `toml:"memory" default:"256MiB" min:"1MiB" fits:"memory" reload:"yes"`
	// MemoryLimit limits the memory of the process of one load; 0 means a computed limit, see
	// LoadMemoryLimit.
	MemoryLimit Size `toml:"memory_limit" min:"0" fits:"memory" reload:"yes"`
	// MinFreeDisk is how many bytes of the disk loads leave free. CheckDisk lets a load begin only if the disk has room for it.
	MinFreeDisk Size `toml:"min_free_disk" min:"0" reload:"yes"`
	CheckDisk   bool `toml:"check_disk" default:"true" reload:"yes"`
	// FromPeers copies blocks from other nodes of the cluster that have them. PeerBandwidth limits the blocks that are given, and those
	// that are received; 0 is unlimited.
	FromPeers     bool `toml:"from_peers" default:"true" reload:"yes"`
	PeerBandwidth Rate `toml:"peer_bandwidth_mb_per_second" default:"100MiB/s" min:"256KiB/s" zero:"yes" max:"1TiB/s" reload:"yes"`
	// Window is when loads of new versions may begin, see turns.ParseWindows; empty means always.
	Window string `toml:"window" form:"windows" reload:"yes" alike:"yes"`
}

// The memory that a load process needs in addition to sorting, in bytes: a base, an amount for each
// processor, which has a worker, and a reserve for uncollected garbage.
const (
	loadProcessNeeds = 128 << 20
	loadWorkerNeeds  = 64 << 20
	loadProcessSpare = 384 << 20
	leastMemoryLimit = 2 << 30 // minimum of the computed limit: a value of 256 MiB is in memory in several forms at once
)

// minMemoryLimit returns the smallest valid load.memory_limit.
func (c *Config) minMemoryLimit() Size {
	return c.Load.Memory + loadProcessNeeds + Size(runtime.GOMAXPROCS(0))*loadWorkerNeeds
}

// LoadMemoryLimit returns load.memory_limit, or if that is 0, a limit computed from load.memory and the
// number of processors: at least 2 GiB, but half of a small machine or container.
func (c *Config) LoadMemoryLimit() Size {
	if c.Load.MemoryLimit > 0 {
		return c.Load.MemoryLimit
	}
	return c.computedLimit(machineMemory())
}

// Ordered reads of clients at the same time.
const (
	scanBytes              = 32 << 20 // that one of them may hold
	leastScans, mostScans  = 4, 64
	scansOfAnUnknownMemory = 16
)

// MaxScans returns how many ordered reads of clients a node answers at the same time: they get an eighth of the memory of the machine
// or its container.
func MaxScans() int { return scansIn(machineMemory()) }

// scansIn returns how many of them a machine with a size of memory answers; 0 is unknown.
func scansIn(machine Size) int {
	if machine == 0 {
		return scansOfAnUnknownMemory
	}
	return int(min(max(machine/8/scanBytes, leastScans), mostScans))
}

// computedLimit returns the memory limit of a load on a machine with a size of memory; 0 if it is unknown.
func (c *Config) computedLimit(machine Size) Size {
	limit, least := max(leastMemoryLimit, c.minMemoryLimit()+loadProcessSpare), c.minMemoryLimit()
	if machine > 0 {
		limit = min(limit, machine/2)
	}
	return max(limit, least)
}

// S3 is [s3].
type S3 struct {
	Region          string `toml:"region"`
	AccessKeyID     string `toml:"access_key_id" needs:"secret_access_key"`
	SecretAccessKey string `toml:"secret_access_key" secret:"yes" needs:"access_key_id"`
	// Endpoint is the URL of an S3-compatible server; empty means Amazon S3.
	Endpoint string `toml:"endpoint" form:"endpoint"`
	// PathStyle puts the bucket's name into the path of URLs instead of the host name.
	PathStyle bool `toml:"path_style"`
}

// Azure is [azure], for Blob Storage and Data Lake Storage of Azure.
type Azure struct {
	// Of AccountKey and SASToken at most one is set. If none is, the environment has the credentials.
	AccountKey string `toml:"account_key" form:"account key" secret:"yes"`
	SASToken   string `toml:"sas_token" form:"SAS token" secret:"yes"`
	// Endpoint is the URL of another server than that of the account, with the path before the container.
	Endpoint string `toml:"endpoint" form:"endpoint"`
}

// HDFS is [hdfs].
type HDFS struct {
	// ConfigDir is the directory of core-site.xml and hdfs-site.xml; empty means HADOOP_CONF_DIR.
	ConfigDir string `toml:"config_dir"`
	// Principal and Keytab are the credentials for Kerberos.
	Principal string `toml:"principal" needs:"keytab"`
	Keytab    string `toml:"keytab" needs:"principal"`
}

// Sharding is [sharding]: how several nodes divide the data.
type Sharding struct {
	Enabled bool `toml:"enabled"`
	// Replication is the number of nodes that hold each partition.
	Replication int `toml:"replication" default:"2" min:"1" alike:"yes"`
	// MinReplication is the number of replicas of every partition that a switch to a version requires.
	MinReplication int `toml:"min_replication" default:"1" min:"1" alike:"yes"`
	// TimeToConverge is how long the set of nodes must be stable before a starting node uses it.
	TimeToConverge time.Duration `toml:"time_to_converge" default:"10s" min:"0s"`
	// ProxyTimeout is the timeout of requests to other nodes for one key.
	ProxyTimeout time.Duration `toml:"proxy_timeout" default:"100ms" min:"1ns"`
	// ProxyStageTimeout is the time after which another node is asked, too; 0 means ProxyTimeout
	// divided by Replication.
	ProxyStageTimeout time.Duration `toml:"proxy_stage_timeout" min:"0s"`
	ClusterName       string        `toml:"cluster_name" default:"sequins" form:"cluster"`
	// AdvertisedHostname is the host name by which other nodes reach this one; empty means its own host
	// name.
	AdvertisedHostname string `toml:"advertised_hostname" form:"host"`
	// ShardID determines the partitions of this node; if empty, the node chooses a number, and
	// ShardIDHost means the advertised host name.
	ShardID string `toml:"shard_id" form:"shard id"`
	// MinNodes is how many nodes a starting node waits for before it divides the data.
	MinNodes int `toml:"min_nodes" min:"0"`
	// Assignment is how partitions are assigned to nodes: round_robin or balanced; empty means as the cluster's rule says.
	Assignment string `toml:"assignment" oneof:"round_robin balanced" alike:"yes"`
	// Weight is this node's share of the data relative to others; only for balanced.
	Weight float64 `toml:"weight" default:"1" min:"0.01" max:"1000"`
	// Zone is the zone of this node. Replicas in it are read first; balanced puts the replicas of a partition into different zones.
	Zone string `toml:"zone" form:"zone" file:"yes"`
	// HealAfter is how long the set of nodes may differ from the one for which the current version was
	// divided, before it is divided again; 0 means never.
	HealAfter time.Duration `toml:"heal_after" min:"0s" alike:"yes"`
	// Secret authenticates nodes to each other; empty disables that.
	Secret string `toml:"secret" form:"secret" secret:"yes"`
	// Role is node, or router for a node that holds no partitions and forwards all requests.
	Role string `toml:"role" default:"node" oneof:"node router"`
}

// ShardIDHost is the value of shard_id for the advertised host name.
const ShardIDHost = "host"

// ZK is [zk].
type ZK struct {
	Servers        []string      `toml:"servers" default:"localhost:2181" form:"server"`
	SessionTimeout time.Duration `toml:"session_timeout" default:"10s" min:"1ms"`
	// Auth is "user:password" for ZooKeeper's digest scheme; znodes are then accessible only to that user.
	Auth string `toml:"auth" form:"user" secret:"yes"`
	// TLS enables TLS to ZooKeeper.
	TLS bool `toml:"tls"`
	// TLSCA is a PEM file with the certificates of accepted issuers; empty means the system's.
	TLSCA string `toml:"tls_ca" needs:"tls"`
	// TLSCertificate and TLSKey are PEM files with a client certificate.
	TLSCertificate string `toml:"tls_certificate" needs:"tls_key tls"`
	TLSKey         string `toml:"tls_key" needs:"tls_certificate"`
}

// Log is [log]: the log on standard error.
type Log struct {
	// Level is the lowest level that is logged: debug, info, warn or error.
	Level string `toml:"level" default:"info" oneof:"debug info warn error" reload:"yes"`
	// Format is text (name=value) or json, one line per event.
	Format string `toml:"format" default:"text" oneof:"text json"`
}

// TLS is [tls]: encryption of connections with clients and other nodes. All files except CA are
// reloaded when they change.
type TLS struct {
	// Certificate is a PEM file with the certificate chain of this node, Key the file of its private
	// key. Without them nothing is encrypted.
	Certificate string `toml:"certificate" needs:"key"`
	Key         string `toml:"key" needs:"certificate"`
	// CA is a PEM file with the issuers of other nodes' certificates; empty means the system's.
	CA string `toml:"ca" needs:"certificate"`
	// ClientCA is a PEM file with the issuers of certificates of clients and of nodes that connect; if
	// empty, no certificate is required.
	ClientCA string `toml:"client_ca" needs:"certificate"`
}

// Auth is [auth]: access rights.
type Auth struct {
	// TokensFile is a file of bearer tokens and their rights; empty allows everything. The file is
	// reloaded when it changes.
	TokensFile string `toml:"tokens_file"`
}

// HTTP is [http]: how answers are delivered to clients of HTTP.
type HTTP struct {
	// AllowedOrigins are the origins whose pages may read answers in a browser; "*" means all.
	AllowedOrigins []string `toml:"allowed_origins" default:"" form:"origin" reload:"yes"`
	// CacheControl is the Cache-Control field of values; empty means none.
	CacheControl string `toml:"cache_control" form:"Cache-Control" reload:"yes"`
	// Compression are the content codings for clients that accept them, the preferred one first; each is one of Codings.
	Compression []string `toml:"compression" default:"" oneof:"zstd gzip" reload:"yes"`
}

// Tracing is [tracing]: export of traces to an OpenTelemetry collector.
type Tracing struct {
	// OTLPEndpoint is the URL of the collector, without /v1/traces; empty disables tracing.
	OTLPEndpoint string `toml:"otlp_endpoint" form:"collector"`
	// Sample is the fraction of requests to trace, from 0 to 1, among those without a parent.
	Sample float64 `toml:"sample" default:"0.01" min:"0" max:"1" reload:"yes"`
}

// Debug is [debug]: the second listener and the request log.
type Debug struct {
	// Bind is the address of the debug listener, which always serves /metrics and /debug/vars; empty disables it.
	Bind string `toml:"bind" form:"address"`
	// Pprof enables /debug/pprof.
	Pprof bool `toml:"pprof"`
	// RequestLogEnable enables the request log.
	RequestLogEnable bool `toml:"request_log_enable" needs:"request_log_file"`
	// RequestLogFile is the file that the request log is appended to, or "stdout".
	RequestLogFile string `toml:"request_log_file" default:"stdout"`
	// RequestLogSample logs a random 1-in-N sample of requests.
	RequestLogSample int `toml:"request_log_sample" default:"1" min:"1" reload:"yes"`
}

// Datadog is [datadog].
type Datadog struct {
	// URL is the address of a DogStatsD agent: host:port, or unix:///path of a socket; empty disables
	// it.
	URL string `toml:"url" form:"agent"`
}

// Require is the type of require_success_file: true, false or "auto".
type Require string

// The values of Require. RequireAuto requires _SUCCESS in all versions of a database if one of them has
// it.
const (
	RequireTrue  Require = "true"
	RequireFalse Require = "false"
	RequireAuto  Require = "auto"
)

// Events is [events]: where events of versions are sent.
type Events struct {
	// Webhook is the URL that receives them; empty disables them.
	Webhook string `toml:"webhook" form:"webhook" reload:"yes" secret:"yes"`
	// Secret signs the requests; empty means no signature.
	Secret string `toml:"secret" form:"secret" reload:"yes" secret:"yes"`
}

// Gate is [gate] and [db.<name>.gate]: what a version must be like to be served.
type Gate struct {
	// MinRecords is the least number of records of a version; 0 means no limit.
	MinRecords int `toml:"min_records" min:"0" reload:"yes" alike:"yes"`
	// MaxShrink and MaxGrowth limit the change of the number of records, and of the bytes of keys and values, from the
	// version that is served, as fractions of that version; 0 means no limit.
	MaxShrink float64 `toml:"max_shrink" min:"0" max:"1" reload:"yes" alike:"yes"`
	MaxGrowth float64 `toml:"max_growth" min:"0" max:"1000000" reload:"yes" alike:"yes"`
	// MaxMissing limits the fraction of a sample of the keys of the version that is served that the new one lacks; 0
	// means no limit.
	MaxMissing float64 `toml:"max_missing" min:"0" max:"1" reload:"yes" alike:"yes"`
	// MaxRecordErrors is how many records may be left out by the load of a node because their key is null, or because key or
	// value are too long. With more, the load fails.
	MaxRecordErrors int `toml:"max_record_errors" min:"0" reload:"yes" alike:"yes"`
	// MaxValueSize limits the size of a value; 0 means no limit.
	MaxValueSize Size `toml:"max_value_size" min:"0" reload:"yes" alike:"yes"`
	// RequiredKeys are keys that a version must have, with regular expressions that their values must match; an empty
	// one matches all.
	RequiredKeys map[string]string `toml:"required_keys" form:"pattern" reload:"yes" alike:"yes"`
}

// DB holds the settings of one database. AllowEmpty, LoadPriority, Partitions, Key, Value and PartitionColumns exist only here; the others default to those of
// the whole file.
type DB struct {
	RequireSuccessFile Require `toml:"require_success_file" reload:"yes" alike:"yes"`
	// AllowEmpty allows versions without records. A version without data files also needs a _SUCCESS file.
	AllowEmpty   bool   `toml:"allow_empty" reload:"yes" alike:"yes"`
	ContentType  string `toml:"content_type" form:"header" reload:"yes" alike:"yes"`
	CacheControl string `toml:"cache_control" form:"Cache-Control" reload:"yes" alike:"yes"`
	Partitioner  string `toml:"partitioner" oneof:"auto string hadoop spark cascading murmur3 murmur3-int murmur3-long kafka hive hive-int hive-long hive-murmur3 hive-murmur3-int hive-murmur3-long" reload:"yes" alike:"yes"`
	KeepVersions int    `toml:"keep_versions" min:"1" reload:"yes" alike:"yes"`
	// LoadWindow is when loads of new versions may begin; LoadPriority decides which of several that wait is next.
	LoadWindow   string `toml:"load_window" form:"windows" reload:"yes" alike:"yes"`
	LoadPriority int    `toml:"load_priority" reload:"yes"`
	Gate         Gate   `toml:"gate"`
	// Partitions is the number of partitions of a version; 0 means that of its files, or that by which they are cut.
	Partitions int `toml:"partitions" min:"0" max:"65536" reload:"yes" alike:"yes"`
	// Key and Value are the names of fields of Avro and Parquet records; an empty Value means the whole
	// record.
	Key   string `toml:"key" reload:"yes" alike:"yes"`
	Value string `toml:"value" reload:"yes" alike:"yes" needs:"key"`
	// PartitionColumns adds the columns in the names of directories (day=2026-01-31) to whole records.
	PartitionColumns bool `toml:"partition_columns" reload:"yes" alike:"yes" needs:"key"`
}

// objectStoreSettle is the default of Settle where an upload is not seen while it runs.
const objectStoreSettle = 2 * time.Minute

// Default returns the configuration of an empty file.
func Default() (c Config) {
	for _, f := range fieldsOf("", reflect.ValueOf(&c).Elem()) {
		if text, found := f.tag.Lookup("default"); found {
			f.value.Set(f.parse(text))
		}
	}
	return c
}

// ForDB returns the settings of a database: its [db.<name>], or the defaults of the file.
func (c *Config) ForDB(name string) DB {
	if db, ok := c.DB[name]; ok {
		return db
	}
	return c.allDBs()
}

// allDBs returns the settings of databases without a table [db.<name>], which are also the defaults of
// such a table.
func (c *Config) allDBs() DB {
	return DB{
		RequireSuccessFile: c.RequireSuccessFile,
		ContentType:        c.ContentType,
		CacheControl:       c.HTTP.CacheControl,
		Partitioner:        c.Partitioner,
		KeepVersions:       c.KeepVersions,
		LoadWindow:         c.Load.Window,
		Gate:               c.Gate,
	}
}
