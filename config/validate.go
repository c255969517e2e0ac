package config

import (
	"maps"
	"math"
	"mime"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// maxDBName limits the name of a database, in bytes.
const maxDBName = 255

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
	return Problems(found)
}

func (c *Config) check() (problems, warnings []*Problem) {
	var k checker
	for f := range fieldsOf("", reflect.ValueOf(*c)) {
		k.field(f)
	}
	if s := c.Sharding; s.Replication >= 1 && s.MinReplication > s.Replication {
		k.problem("sharding.min_replication", "%d is more than sharding.replication, %d", s.MinReplication, s.Replication)
	}
	k.addresses(c)
	k.store(c)
	k.memory(c)
	k.credentials(c)
	if c.Debug.RequestLogEnable && c.Debug.RequestLogFile == "" {
		k.problem("debug.request_log_file", "is empty, and request_log_enable is set")
	}
	k.needsCertificate(&c.TLS)
	k.zk(c)
	if c.Sharding.Enabled {
		k.sharding(c)
	} else {
		k.single(c)
	}
	k.gate("gate", &c.Gate)
	for _, name := range slices.Sorted(maps.Keys(c.DB)) {
		k.db(join("db", name), name, c.DB[name], c.allDBs())
	}
	k.withoutEffect(c)
	return k.problems, k.warnings
}

// needs checks that a key is not set without another one.
func (k *checker) needs(key string, set bool, other string, otherSet bool) {
	if set && !otherSet {
		k.problem(key, "is set, and %s is not", other)
	}
}

// together checks that two keys are set, or neither.
func (k *checker) together(table, a string, aSet bool, b string, bSet bool) {
	k.needs(table+"."+a, aSet, b, bSet)
	k.needs(table+"."+b, bSet, a, aSet)
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

// addresses checks that no two listeners have the same port.
func (k *checker) addresses(c *Config) {
	listeners := []struct{ key, address string }{{"bind", c.Bind}, {"redis.bind", c.Redis.Bind}, {"debug.bind", c.Debug.Bind}}
	for i, a := range listeners {
		host, port, _ := net.SplitHostPort(a.address)
		for _, b := range listeners[:i] {
			other, samePort, _ := net.SplitHostPort(b.address)
			if port != "" && port != "0" && port == samePort && (host == other || isWildcard(host) || isWildcard(other)) {
				k.problem(a.key, "%q has the port of %s, %q", a.address, b.key, b.address)
			}
		}
	}
}

func isWildcard(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

// storeData is the subdirectory of the local store in which the node deletes files.
const storeData = "data"

// store checks the local store. It must not be inside the source, which would list it, and the source
// must not be inside storeData. A source elsewhere in the local store, as in older files, is safe.
func (k *checker) store(c *Config) {
	const key = "local_store"
	source, local := c.localSource()
	switch data := filepath.Join(c.LocalStore, storeData); {
	case filepath.Clean(c.LocalStore) == "/":
		k.problem(key, "%q is the root of the file system", c.LocalStore)
	case !local || !filepath.IsAbs(source) || !filepath.IsAbs(c.LocalStore):
	case within(source, c.LocalStore):
		k.problem(key, "%q is within the source, %q", c.LocalStore, source)
	case within(data, source):
		k.problem("source", "%q is within the local store's %q, in which everything else is deleted", source, data)
	case within(c.LocalStore, source):
		k.warn("source", "%q is within the local store, %q; a directory of its own is safer", source, c.LocalStore)
	}
}

// within reports whether path is dir or below it. Both are absolute.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// memory checks the memory of loads.
func (k *checker) memory(c *Config) {
	if least := c.minMemoryLimit(); c.Load.MemoryLimit != 0 && c.Load.MemoryLimit < least {
		k.problem("load.memory_limit", "must be 0 or, with this load.memory and on this machine, at least %s, not %s", least, c.Load.MemoryLimit)
	}
	if memory := machineMemory(); memory > 0 && c.MaxParallelLoads > 0 && c.Load.Memory > memory/Size(c.MaxParallelLoads) {
		k.warn("max_parallel_loads", "%d loads may need %s each to sort (load.memory): more than the %s of memory of this machine", c.MaxParallelLoads, c.Load.Memory, memory)
	}
}

// credentials checks that credentials are complete, and not of two kinds.
func (k *checker) credentials(c *Config) {
	secret := c.asGiven("s3.secret_access_key", c.S3.SecretAccessKey)
	k.needs("s3.access_key_id", c.S3.AccessKeyID != "", "secret_access_key", secret != "")
	k.needs(secret, secret != "", "access_key_id", c.S3.AccessKeyID != "")
	k.together("hdfs", "principal", c.HDFS.Principal != "", "keytab", c.HDFS.Keytab != "")
	key, token := c.asGiven("azure.account_key", c.Azure.AccountKey), c.asGiven("azure.sas_token", c.Azure.SASToken)
	if key != "" && token != "" {
		k.problem(token, "is set, and so is %s", lastPart(key))
	}
}

// needsCertificate checks that the rest of [tls] is not set without a certificate.
func (k *checker) needsCertificate(t *TLS) {
	certificate := t.Certificate != ""
	k.together("tls", "certificate", certificate, "key", t.Key != "")
	k.needs("tls.ca", t.CA != "", "certificate", certificate)
	k.needs("tls.client_ca", t.ClientCA != "", "certificate", certificate)
	k.needs("tls.http2", t.HTTP2, "certificate", certificate)
}

func (k *checker) zk(c *Config) {
	z := &c.ZK
	if c.Sharding.Enabled && len(z.Servers) == 0 {
		k.problem("zk.servers", "is empty, and sharding is enabled")
	}
	k.together("zk", "tls_certificate", z.TLSCertificate != "", "tls_key", z.TLSKey != "")
	k.needs("zk.tls_ca", z.TLSCA != "", "tls", z.TLS)
	k.needs("zk.tls_certificate", z.TLSCertificate != "" && z.TLSKey != "", "tls", z.TLS)
}

// sharding checks a node of a cluster.
func (k *checker) sharding(c *Config) {
	s := &c.Sharding
	if c.Auth.TokensFile != "" && c.asGiven("sharding.secret", s.Secret) == "" {
		k.problem("sharding.secret", "is not set, and auth.tokens_file is: nodes do not pass tokens on, and need a secret to ask each other")
	}
	if s.ProxyStageTimeout >= s.ProxyTimeout {
		k.warn("sharding.proxy_stage_timeout", "%s is not less than sharding.proxy_timeout, %s: only one node is asked unless it fails", s.ProxyStageTimeout, s.ProxyTimeout)
	}
	if s.HealAfter > 0 && s.HealAfter < c.ZK.SessionTimeout {
		k.warn("sharding.heal_after", "%s is less than zk.session_timeout, %s: a node that ZooKeeper does not hear from for a moment is replaced", s.HealAfter, c.ZK.SessionTimeout)
	}
	if s.MinNodes > 0 && s.MinNodes < s.Replication {
		k.warn("sharding.min_nodes", "%d nodes cannot hold sharding.replication, %d, replicas of a partition", s.MinNodes, s.Replication)
	}
	if s.Assignment == "round_robin" && s.Weight != 1 {
		k.warn("sharding.weight", "has no effect: sharding.assignment is round_robin")
	}
	if s.Assignment == "round_robin" && s.Zone != "" {
		k.warn("sharding.zone", "is only shown: sharding.assignment is round_robin, which puts replicas into any zones")
	}
	if host, _, _ := net.SplitHostPort(c.Bind); isLoopback(host) && !isLoopback(s.AdvertisedHostname) {
		k.warn("bind", "%q is the loopback interface: nodes on other machines cannot reach this one", c.Bind)
	}
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// single warns of keys of a cluster that are set for a single node.
func (k *checker) single(c *Config) {
	const why = "has no effect: sharding.enabled is false"
	for _, change := range Changes(Default(), *c) {
		table, _, _ := strings.Cut(change.Key, ".")
		if (table == "sharding" || table == "zk") && change.Key != "sharding.cluster_name" { // a tag of metrics, too
			k.warn(change.Key, why)
		}
	}
	if c.Cache.Bytes != 0 {
		k.warn("cache.bytes", "has no effect: a single node (sharding.enabled = false) asks no other nodes")
	}
}

// gate warns of rules that hold nothing.
func (k *checker) gate(key string, g *Gate) {
	const longestValue = math.MaxInt32 // of a record
	for name, never := range map[string]bool{"max_shrink": g.MaxShrink == 1, "max_missing": g.MaxMissing == 1, "max_value_size": g.MaxValueSize > longestValue} {
		if never {
			k.warn(key+"."+name, "has no effect: nothing can exceed it")
		}
	}
}

// db checks [db.<name>], of its values those that differ from the values for all databases.
func (k *checker) db(key, name string, db, all DB) {
	if len(name) > maxDBName || !dbName.MatchString(name) || slices.Contains([]string{"healthz", "livez", "readyz"}, name) {
		k.problem(key, "%q cannot be the name of a database", name)
	}
	for f, standard := range pairs(key, reflect.ValueOf(db), reflect.ValueOf(all)) {
		if !f.equals(standard) {
			k.field(f)
		}
	}
	if !reflect.DeepEqual(db.Gate, all.Gate) {
		k.gate(key+".gate", &db.Gate)
	}
	k.needs(key+".value", db.Value != "", "key", db.Key != "")
	switch {
	case db.PartitionColumns && db.Key == "":
		k.problem(key+".partition_columns", "is set, and key is not: it is for Avro and Parquet files")
	case db.PartitionColumns && db.Value != "":
		k.problem(key+".partition_columns", "adds fields to whole records, and value is %q: leave one of them out", db.Value)
	}
}

// MaxBlockSize is the largest page size; larger values are reduced to it.
const MaxBlockSize = 60 << 10

// withoutEffect warns of values that do nothing, or not what they say.
func (k *checker) withoutEffect(c *Config) {
	if c.Storage.BlockSize > MaxBlockSize {
		k.warn("storage.block_size", "pages have at most %d bytes, and get them", MaxBlockSize)
	}
	if slices.Contains(c.HTTP.AllowedOrigins, "*") && len(c.HTTP.AllowedOrigins) > 1 {
		k.warn("http.allowed_origins", `"*" allows all origins: the others have no effect`)
	}
	if _, _, err := mime.ParseMediaType(c.ContentType); c.ContentType != "" && (err != nil || !strings.Contains(c.ContentType, "/")) {
		k.warn("content_type", "%q is not a media type such as text/plain", c.ContentType)
	}
	if c.Load.MinFreeDisk > 0 && !c.Load.CheckDisk {
		k.warn("load.min_free_disk", "has no effect: load.check_disk is false")
	}
	if c.Debug.Pprof && c.Debug.Bind == "" {
		k.warn("debug.pprof", "has no effect: debug.bind is empty")
	}
}
