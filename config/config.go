// Package config owns sequins.conf: which keys there are, what they mean, what they are when nothing is
// said, and which values are refused.
//
// The struct Config is the list of keys: a field with a toml tag is a key, the tag reload marks the keys
// that a running node takes over on SIGHUP, and retired.go names the keys that are accepted for the sake
// of old files and do nothing. Load reads a file in four steps: go-toml parses it into a tree, a second
// look at the syntax finds the line of each key (position.go), decode.go walks tree and struct together
// and reports every key that is unknown or of a wrong type, and validate.go checks the values. Problems
// are gathered, each with its line, and reported together. Nothing here looks at the disk apart from the
// file itself, so that a configuration can be checked on another machine than the one it is for.
package config

import (
	"runtime"
	"time"
)

// Config is everything that sequins.conf can say, with durations and sizes parsed. Its zero value is not
// usable: start from Default.
type Config struct {
	// Source is where the data is: an absolute path, or a file://, hdfs:// or s3:// URL. It has no default.
	Source string `toml:"source"`
	// Bind is the address (host:port) that requests are answered on.
	Bind string `toml:"bind"`
	// MaxConnections bounds the open connections of clients and other nodes; 0 stands for half of the
	// process's limit of open files, but at most 262144.
	MaxConnections int `toml:"max_connections"`
	// LocalStore is the absolute path of the directory that blocks are kept in.
	LocalStore string `toml:"local_store"`
	// MaxParallelLoads limits how many databases load at the same time; 0 stands for ten.
	MaxParallelLoads int `toml:"max_parallel_loads"`
	// ThrottleLoads is slept after every record that is loaded; 0 is off.
	ThrottleLoads time.Duration `toml:"throttle_loads" reload:"yes"`
	// RefreshPeriod is the time between two looks at the source; 0 leaves it to SIGHUP.
	RefreshPeriod time.Duration `toml:"refresh_period" reload:"yes"`
	// RequireSuccessFile makes a version without a _SUCCESS file not exist yet: true, false or auto.
	RequireSuccessFile Require `toml:"require_success_file" reload:"yes"`
	// Settle is the time between the two looks that a version without a marker must pass unchanged; 0 takes
	// it at the first.
	Settle time.Duration `toml:"settle" reload:"yes"`
	// AllowEmpty makes a version without records a valid, empty one. Without data files it needs a _SUCCESS file.
	AllowEmpty bool `toml:"allow_empty" reload:"yes"`
	// ContentType is sent with every value; empty stands for application/octet-stream.
	ContentType string `toml:"content_type" reload:"yes"`
	// Partitioner is the function that data files are cut by: auto, string, hadoop, spark or cascading.
	Partitioner string `toml:"partitioner" reload:"yes"`
	// MaxDownloadBandwidth limits reading from the source, in MiB a second for the whole node; 0 is off.
	MaxDownloadBandwidth int `toml:"max_download_bandwidth_mb_per_second" reload:"yes"`
	// VersionRemoveTimeout is how long a version that has been replaced stays after the last request for it.
	VersionRemoveTimeout time.Duration `toml:"version_remove_timeout" reload:"yes"`
	// DBRemoveTimeout is how long a database is served on that the source does not list any more.
	DBRemoveTimeout time.Duration `toml:"db_remove_timeout" reload:"yes"`
	// ShutdownDelay is how long requests are served after SIGTERM, while /readyz fails; 0 ends at once.
	ShutdownDelay time.Duration `toml:"shutdown_delay"`
	// ScrubPeriod is the time between two readings of every block that look for damage; 0 is off.
	ScrubPeriod time.Duration `toml:"scrub_period"`
	// ScrubMBPerSecond bounds those readings, in MiB a second; 0 does not.
	ScrubMBPerSecond int `toml:"scrub_mb_per_second"`

	Storage  Storage  `toml:"storage"`
	Load     LoadKeys `toml:"load"`
	S3       S3       `toml:"s3"`
	HDFS     HDFS     `toml:"hdfs"`
	Sharding Sharding `toml:"sharding"`
	ZK       ZK       `toml:"zk"`
	Log      Log      `toml:"log"`
	TLS      TLS      `toml:"tls"`
	Auth     Auth     `toml:"auth"`
	Tracing  Tracing  `toml:"tracing"`
	Debug    Debug    `toml:"debug"`
	Datadog  Datadog  `toml:"datadog"`

	// DB holds the databases that differ from the rest of the file, each complete: what [db.<name>]
	// leaves out has been filled in. Use ForDB to read it.
	DB map[string]DB `toml:"db" reload:"yes"`
}

// Storage is [storage]: the shape of the blocks that are written from now on. Blocks that are there keep
// theirs.
type Storage struct {
	// Compression of pages: none, snappy, lz4 or zstd.
	Compression string `toml:"compression" reload:"yes"`
	// BlockSize is the size of a page before compression, in bytes.
	BlockSize int `toml:"block_size" reload:"yes"`
}

// LoadKeys is [load].
type LoadKeys struct {
	// Memory is what the sort of one load may use, however large the files are.
	Memory Size `toml:"memory" reload:"yes"`
	// MemoryLimit is what the process of one load may use in all; 0 stands for LoadMemoryLimit's own choice.
	MemoryLimit Size `toml:"memory_limit" reload:"yes"`
}

// A load process needs memory beside that for sorting: some, some for each processor, on each of which it has a
// worker, and room for what the garbage collector has not freed yet. In bytes.
const (
	loadProcessNeeds = 128 << 20
	loadWorkerNeeds  = 64 << 20
	loadProcessSpare = 384 << 20
	leastMemoryLimit = 2 << 30 // of those that are not configured: a value of 256 MiB is there in several forms at a time
)

// minMemoryLimit is the least load.memory_limit.
func (c *Config) minMemoryLimit() Size {
	return c.Load.Memory + loadProcessNeeds + Size(runtime.GOMAXPROCS(0))*loadWorkerNeeds
}

// LoadMemoryLimit is load.memory_limit, or if that is 0, what load.memory and the processors of this machine
// make of it, and at least 2 GiB.
func (c *Config) LoadMemoryLimit() Size {
	if c.Load.MemoryLimit > 0 {
		return c.Load.MemoryLimit
	}
	return max(leastMemoryLimit, c.minMemoryLimit()+loadProcessSpare)
}

// S3 is [s3].
type S3 struct {
	Region          string `toml:"region"`
	AccessKeyID     string `toml:"access_key_id"`
	SecretAccessKey string `toml:"secret_access_key"`
	// MaxRetries is how often a request is tried again before a load fails.
	MaxRetries int `toml:"max_retries"`
	// Endpoint is the URL of a server that speaks S3's protocol; empty stands for Amazon's.
	Endpoint string `toml:"endpoint"`
	// PathStyle puts the bucket's name into the path of URLs instead of the name of the host.
	PathStyle bool `toml:"path_style"`
}

// HDFS is [hdfs].
type HDFS struct {
	// ConfigDir is the directory of core-site.xml and hdfs-site.xml; empty stands for HADOOP_CONF_DIR.
	ConfigDir string `toml:"config_dir"`
	// User is who reads, where Kerberos does not say so; empty stands for HADOOP_USER_NAME, or for the
	// user of the process.
	User string `toml:"user"`
	// Principal and Keytab are what to log in to Kerberos with.
	Principal string `toml:"principal"`
	Keytab    string `toml:"keytab"`
	// CredentialCache is used in their place; empty stands for KRB5CCNAME, or for that of kinit.
	CredentialCache string `toml:"credential_cache"`
	// Krb5Conf is the configuration of Kerberos; empty stands for KRB5_CONFIG, or for /etc/krb5.conf.
	Krb5Conf string `toml:"krb5_conf"`
	// NamenodePrincipal is that of the namenodes; empty stands for dfs.namenode.kerberos.principal.
	NamenodePrincipal string `toml:"namenode_principal"`
	// DataTransferProtection is authentication or privacy; empty stands for dfs.data.transfer.protection.
	DataTransferProtection string `toml:"data_transfer_protection"`
	// Timeout is how long to wait for a server that says nothing.
	Timeout time.Duration `toml:"timeout"`
	// RetryFor is how long what has failed is tried again.
	RetryFor time.Duration `toml:"retry_for"`
}

// Sharding is [sharding]: how several nodes divide the data.
type Sharding struct {
	Enabled bool `toml:"enabled"`
	// Replication is the number of nodes that hold each partition.
	Replication int `toml:"replication"`
	// MinReplication is the number of replicas of every partition that a switch to a version waits for.
	MinReplication int `toml:"min_replication"`
	// MaxReplication keeps a node from taking a partition that has so many replicas; below Replication
	// it is off.
	MaxReplication int `toml:"max_replication"`
	// TimeToConverge is how long the set of nodes has to be stable before a starting node trusts it.
	TimeToConverge time.Duration `toml:"time_to_converge"`
	// ProxyTimeout is the time that a request may spend on asking other nodes.
	ProxyTimeout time.Duration `toml:"proxy_timeout"`
	// ProxyStageTimeout is the time after which another node is asked too; 0 stands for ProxyTimeout
	// divided by Replication.
	ProxyStageTimeout time.Duration `toml:"proxy_stage_timeout"`
	ClusterName       string        `toml:"cluster_name"`
	// AdvertisedHostname is the name that other nodes reach this one by; empty stands for its host name.
	AdvertisedHostname string `toml:"advertised_hostname"`
	// ShardID decides which partitions are this node's; empty has the node choose a number, and ShardIDHost
	// stands for the advertised host name.
	ShardID string `toml:"shard_id"`
	// MinNodes is how many nodes a starting node waits for before it divides the data among them.
	MinNodes int `toml:"min_nodes"`
	// Assignment is the rule by which partitions are divided: round_robin or balanced.
	Assignment string `toml:"assignment"`
	// Weight is this node's share, relative to the weights of the others; for balanced only.
	Weight float64 `toml:"weight"`
	// Zone is where this node stands; balanced puts the replicas of a partition into different ones.
	Zone string `toml:"zone"`
	// HealAfter is how long the set of nodes may differ from the one that the current version was divided
	// among before it is divided again; 0 is never.
	HealAfter time.Duration `toml:"heal_after"`
	// Secret is what nodes show each other, and SecretFile a file with it; empty: nothing.
	Secret     string `toml:"secret"`
	SecretFile string `toml:"secret_file"`
	// Role is node, or router for one that holds nothing and answers by asking others.
	Role string `toml:"role"`
}

// ShardIDHost is the shard id that stands for the advertised host name.
const ShardIDHost = "host"

// ZK is [zk].
type ZK struct {
	Servers        []string      `toml:"servers"`
	ConnectTimeout time.Duration `toml:"connect_timeout"`
	SessionTimeout time.Duration `toml:"session_timeout"`
	// Auth is "user:password" for ZooKeeper's digest scheme; what is written then is for that user alone.
	Auth string `toml:"auth"`
	// TLS encrypts the connections to ZooKeeper.
	TLS bool `toml:"tls"`
	// TLSCA is a file of PEM certificates to check the servers' against; empty stands for the system's.
	TLSCA string `toml:"tls_ca"`
	// TLSCertificate and TLSKey are PEM files for servers that ask who is there.
	TLSCertificate string `toml:"tls_certificate"`
	TLSKey         string `toml:"tls_key"`
}

// Log is [log]: what is said on standard error, and how.
type Log struct {
	// Level is the least that is said: debug, info, warn or error.
	Level string `toml:"level" reload:"yes"`
	// Format is text (name=value) or json, one line for each event.
	Format string `toml:"format"`
}

// TLS is [tls]: how the connections of clients, and those to other nodes, are encrypted. The files but CA
// are read again when they change.
type TLS struct {
	// Certificate is a PEM file with this node's certificate and those of its issuers, and Key one with its
	// key. Without them nothing is encrypted.
	Certificate string `toml:"certificate"`
	Key         string `toml:"key"`
	// CA is a PEM file with the certificates that other nodes' are checked against; empty stands for the
	// system's.
	CA string `toml:"ca"`
	// ClientCA is a PEM file with the certificates that those of clients, and of other nodes that ask, are
	// checked against; empty lets in those who have none.
	ClientCA string `toml:"client_ca"`
	// HTTP2 offers HTTP/2 to clients.
	HTTP2 bool `toml:"http2"`
}

// Auth is [auth]: who may read what.
type Auth struct {
	// TokensFile is a file of bearer tokens, each with what it may read; empty lets everybody read everything.
	// The file is read again when it changes.
	TokensFile string `toml:"tokens_file"`
}

// Tracing is [tracing]: what is told to an OpenTelemetry collector.
type Tracing struct {
	// OTLPEndpoint is the URL of the collector, without /v1/traces; empty is off.
	OTLPEndpoint string `toml:"otlp_endpoint"`
	// Sample is which fraction of the requests that begin here is traced, from 0 to 1.
	Sample float64 `toml:"sample" reload:"yes"`
}

// Debug is [debug]: the second listener and the request log.
type Debug struct {
	// Bind is the address of the debug listener, which always serves /metrics; empty is off.
	Bind string `toml:"bind"`
	// Expvars adds /debug/vars to it.
	Expvars bool `toml:"expvars"`
	// Pprof adds /debug/pprof to it.
	Pprof bool `toml:"pprof"`
	// RequestLogEnable turns the log of requests on.
	RequestLogEnable bool `toml:"request_log_enable"`
	// RequestLogFile is where that log is appended: a path, or "stdout".
	RequestLogFile string `toml:"request_log_file"`
	// RequestLogSample is how many requests that log has one of, chosen by chance; 1 is every one.
	RequestLogSample int `toml:"request_log_sample" reload:"yes"`
}

// Datadog is [datadog].
type Datadog struct {
	// URL is the address of a DogStatsD agent: host:port, or unix:///path of a socket; empty is none.
	URL string `toml:"url"`
}

// Require is the value of require_success_file: true, false or "auto".
type Require string

// The values of Require. With RequireAuto, _SUCCESS is required of all versions of a database if one of them
// has it.
const (
	RequireTrue  Require = "true"
	RequireFalse Require = "false"
	RequireAuto  Require = "auto"
)

// DB is what can differ from one database to another. The keys mean what they mean for all of them; Key
// and Value, which no two need have alike, are here alone.
type DB struct {
	RequireSuccessFile Require `toml:"require_success_file" reload:"yes"`
	AllowEmpty         bool    `toml:"allow_empty" reload:"yes"`
	ContentType        string  `toml:"content_type" reload:"yes"`
	Partitioner        string  `toml:"partitioner" reload:"yes"`
	Compression        string  `toml:"compression" reload:"yes"`
	BlockSize          int     `toml:"block_size" reload:"yes"`
	// Key and Value are fields of Avro and Parquet records; no Value is the whole record.
	Key   string `toml:"key" reload:"yes"`
	Value string `toml:"value" reload:"yes"`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Bind:                 "0.0.0.0:9599",
		LocalStore:           "/var/sequins/",
		RequireSuccessFile:   RequireAuto,
		Settle:               3 * time.Second,
		Partitioner:          "auto",
		VersionRemoveTimeout: 10 * time.Minute,
		DBRemoveTimeout:      time.Hour,
		ScrubMBPerSecond:     20,
		Storage:              Storage{Compression: "snappy", BlockSize: 4096},
		Load:                 LoadKeys{Memory: 256 << 20},
		S3:                   S3{MaxRetries: 3},
		HDFS:                 HDFS{Timeout: 20 * time.Second, RetryFor: time.Minute},
		Sharding: Sharding{
			Replication:    2,
			MinReplication: 1,
			TimeToConverge: 10 * time.Second,
			ProxyTimeout:   100 * time.Millisecond,
			ClusterName:    "sequins",
			Assignment:     "round_robin",
			Weight:         1,
			Role:           "node",
		},
		ZK: ZK{
			Servers:        []string{"localhost:2181"},
			ConnectTimeout: time.Second,
			SessionTimeout: 10 * time.Second,
		},
		Log:     Log{Level: "info", Format: "text"},
		Tracing: Tracing{Sample: 0.01},
		Debug:   Debug{Expvars: true, RequestLogFile: "stdout", RequestLogSample: 1},
	}
}

// ForDB returns what holds for one database: its [db.<name>], or what the file says for all.
func (c *Config) ForDB(name string) DB {
	if db, ok := c.DB[name]; ok {
		return db
	}
	return c.allDBs()
}

// allDBs is what a database that the file does not mention gets, and what [db.<name>] starts from.
func (c *Config) allDBs() DB {
	return DB{
		RequireSuccessFile: c.RequireSuccessFile,
		AllowEmpty:         c.AllowEmpty,
		ContentType:        c.ContentType,
		Partitioner:        c.Partitioner,
		Compression:        c.Storage.Compression,
		BlockSize:          c.Storage.BlockSize,
	}
}
