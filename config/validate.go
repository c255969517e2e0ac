package config

import (
	"maps"
	"mime"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sequins/internal/names"
)

// Validate checks the values and their combinations, as Load does. The error joins a Problem without a line for each.
func (c *Config) Validate() error {
	d := new(decoder)
	d.check(c)
	return joined(d.problems)
}

// check checks the values and their combinations. A key that could not be decoded has its default value here, and was reported.
func (d *decoder) check(c *Config) {
	d.reported = make(map[string]bool)
	for _, p := range d.problems {
		d.reported[p.Key] = true
	}
	fields := fieldsOf("", reflect.ValueOf(*c))
	d.needs(c, fields)
	for _, f := range fields {
		d.field(f)
	}
	if s := c.Sharding; s.Replication >= 1 && s.MinReplication > s.Replication {
		d.problem("sharding.min_replication", "%d is more than sharding.replication, %d", s.MinReplication, s.Replication)
	}
	d.addresses(c)
	d.store(c)
	if least := c.minMemoryLimit(); c.Load.MemoryLimit != 0 && c.Load.MemoryLimit < least {
		d.problem("load.memory_limit", "must be 0 or, with this load.memory and on this machine, at least %s, not %s", least, c.Load.MemoryLimit)
	}
	if memory := machineMemory(); memory > 0 && c.MaxParallelLoads > 0 && c.Load.Memory > memory/Size(c.MaxParallelLoads) {
		d.warn("max_parallel_loads", "%d loads may need %s each to sort (load.memory): more than the %s of memory of this machine", c.MaxParallelLoads, c.Load.Memory, memory)
	}
	if c.isGiven("azure.account_key", c.Azure.AccountKey) && c.isGiven("azure.sas_token", c.Azure.SASToken) {
		d.problem(c.asGiven("azure.sas_token"), "is set, and so is %s", lastPart(c.asGiven("azure.account_key")))
	}
	if c.Sharding.Enabled {
		d.sharding(c)
	} else {
		d.single(c, fields)
	}
	for _, name := range slices.Sorted(maps.Keys(c.DB)) {
		d.db(c, name, c.DB[name])
	}
	d.withoutEffect(c)
}

// needs checks the tags needs: the keys that they name, of the same table, must be set if the key is.
func (d *decoder) needs(c *Config, fields []field) {
	set := make(map[string]bool)
	for _, f := range fields {
		set[f.key] = !f.value.IsZero() || c.Files[f.key] != ""
	}
	for _, f := range fields {
		for other := range strings.FieldsSeq(f.tag.Get("needs")) {
			if set[f.key] && !set[strings.TrimSuffix(f.key, lastPart(f.key))+other] {
				d.problem(c.asGiven(f.key), "is set, and %s is not", other)
			}
		}
	}
}

// addresses checks that no two listeners have the same port.
func (d *decoder) addresses(c *Config) {
	listeners := []struct{ key, address string }{{"bind", c.Bind}, {"redis.bind", c.Redis.Bind}, {"debug.bind", c.Debug.Bind}}
	for i, a := range listeners {
		host, port, _ := net.SplitHostPort(a.address)
		for _, b := range listeners[:i] {
			other, samePort, _ := net.SplitHostPort(b.address)
			if port != "" && port != "0" && port == samePort && (host == other || isEvery(host) || isEvery(other)) {
				d.problem(a.key, "%q has the port of %s, %q", a.address, b.key, b.address)
			}
		}
	}
}

// storeData is the subdirectory of the local store in which the node deletes files.
const storeData = "data"

// store checks the local store. It must not be inside the source, which would list it, and the source
// must not be inside storeData. A source elsewhere in the local store, as in older files, is safe.
func (d *decoder) store(c *Config) {
	const key = "local_store"
	source, local := c.Source, !strings.Contains(c.Source, "://")
	if u, err := url.Parse(c.Source); !local && err == nil && u.Scheme == "file" {
		source, local = u.Path, true
	}
	switch data := filepath.Join(c.LocalStore, storeData); {
	case filepath.Clean(c.LocalStore) == "/":
		d.problem(key, "%q is the root of the file system", c.LocalStore)
	case !local || !filepath.IsAbs(source) || !filepath.IsAbs(c.LocalStore):
	case within(source, c.LocalStore):
		d.problem(key, "%q is within the source, %q", c.LocalStore, source)
	case within(data, source):
		d.problem("source", "%q is within the local store's %q, in which everything else is deleted", source, data)
	case within(c.LocalStore, source):
		d.warn("source", "%q is within the local store, %q; a directory of its own is safer", source, c.LocalStore)
	}
}

// within reports whether path is dir or below it. Both are absolute.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// sharding checks a node of a cluster.
func (d *decoder) sharding(c *Config) {
	s := &c.Sharding
	if len(c.ZK.Servers) == 0 {
		d.problem("zk.servers", "is empty, and sharding is enabled")
	}
	if c.Auth.TokensFile != "" && !c.isGiven("sharding.secret", s.Secret) {
		d.problem("sharding.secret", "is not set, and auth.tokens_file is: nodes do not pass tokens on, and need a secret to ask each other")
	}
	if s.ProxyStageTimeout >= s.ProxyTimeout {
		d.warn("sharding.proxy_stage_timeout", "%s is not less than sharding.proxy_timeout, %s: only one node is asked unless it fails", s.ProxyStageTimeout, s.ProxyTimeout)
	}
	if s.HealAfter > 0 && s.HealAfter < c.ZK.SessionTimeout {
		d.warn("sharding.heal_after", "%s is less than zk.session_timeout, %s: a node that ZooKeeper does not hear from for a moment is replaced", s.HealAfter, c.ZK.SessionTimeout)
	}
	if s.MinNodes > 0 && s.MinNodes < s.Replication {
		d.warn("sharding.min_nodes", "%d nodes cannot hold sharding.replication, %d, replicas of a partition", s.MinNodes, s.Replication)
	}
	if s.Assignment == "round_robin" && s.Weight != 1 {
		d.warn("sharding.weight", "has no effect: sharding.assignment is round_robin")
	}
	if s.Assignment == "round_robin" && s.Zone != "" {
		d.warn("sharding.zone", "decides only which replicas are read first: sharding.assignment is round_robin, which puts replicas into any zones")
	}
	if host, _, _ := net.SplitHostPort(c.Bind); isLoopback(host) && !isLoopback(s.AdvertisedHostname) {
		d.warn("bind", "%q is the loopback interface: nodes on other machines cannot reach this one", c.Bind)
	}
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// single warns of keys of a cluster that are set for a single node.
func (d *decoder) single(c *Config, fields []field) {
	const why = "has no effect: sharding.enabled is false"
	standard := fieldsOf("", reflect.ValueOf(Default()))
	for i, f := range fields {
		table, _, _ := strings.Cut(f.key, ".")
		if (table == "sharding" || table == "zk") && f.key != "sharding.cluster_name" && !f.equals(standard[i]) { // a tag of metrics, too
			d.warn(f.key, why)
		}
	}
}

// db checks [db.<name>], of its values those that differ from the values for all databases.
func (d *decoder) db(c *Config, name string, db DB) {
	key, all := join("db", name), c.allDBs()
	if !names.ValidDatabase(name) {
		d.problem(key, "%q cannot be the name of a database", name)
	}
	standard, fields := fieldsOf(key, reflect.ValueOf(all)), fieldsOf(key, reflect.ValueOf(db))
	d.needs(c, fields)
	for i, f := range fields {
		if !f.equals(standard[i]) {
			d.field(f)
		}
	}
	if db.PartitionColumns && db.Value != "" {
		d.problem(key+".partition_columns", "adds fields to whole records, and value is %q: leave one of them out", db.Value)
	}
}

// MaxBlockSize is the largest page size; larger values are reduced to it.
const MaxBlockSize = 60 << 10

// withoutEffect warns of values that do nothing, or not what they say.
func (d *decoder) withoutEffect(c *Config) {
	if c.Storage.BlockSize > MaxBlockSize {
		d.warn("storage.block_size", "pages have at most %d bytes, and get them", MaxBlockSize)
	}
	if slices.Contains(c.HTTP.AllowedOrigins, "*") && len(c.HTTP.AllowedOrigins) > 1 {
		d.warn("http.allowed_origins", `"*" allows all origins: the others have no effect`)
	}
	if _, _, err := mime.ParseMediaType(c.ContentType); c.ContentType != "" && (err != nil || !strings.Contains(c.ContentType, "/")) {
		d.warn("content_type", "%q is not a media type such as text/plain", c.ContentType)
	}
	if c.Load.MinFreeDisk > 0 && !c.Load.CheckDisk {
		d.warn("load.min_free_disk", "has no effect: load.check_disk is false")
	}
	if c.Debug.Pprof && c.Debug.Bind == "" {
		d.warn("debug.pprof", "has no effect: debug.bind is empty")
	}
}
