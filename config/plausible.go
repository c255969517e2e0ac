package config

import (
	"math"
	"mime"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// plausible warns of values that are valid and hardly meant, and of keys without effect.
func (k *checker) plausible(c *Config) {
	k.durations("", reflect.ValueOf(*c))
	k.sizes(c)
	k.rates(c)
	k.disconnected(c)
	if h := c.Sharding.HealAfter; c.Sharding.Enabled && h > 0 && h < c.ZK.SessionTimeout {
		k.warn("sharding.heal_after", "%s is less than zk.session_timeout, %s: a node that ZooKeeper does not hear from for a moment is replaced", h, c.ZK.SessionTimeout)
	}
	if n, r := c.Sharding.MinNodes, c.Sharding.Replication; c.Sharding.Enabled && n > 0 && n < r {
		k.warn("sharding.min_nodes", "%d nodes cannot hold sharding.replication, %d, replicas of a partition", n, r)
	}
	if !c.Sharding.Enabled {
		k.withoutEffect("zk", Default().ZK, c.ZK)
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

const (
	// leastDuration and mostDuration are the range in which a duration is likely to be meant.
	leastDuration = time.Millisecond
	mostDuration  = 365 * 24 * time.Hour
)

// durations warns of durations whose unit may be wrong.
func (k *checker) durations(path string, table reflect.Value) {
	for field, v := range table.Fields() {
		key := join(path, field.Tag.Get("toml"))
		d, is := v.Interface().(time.Duration)
		switch {
		case v.Kind() == reflect.Struct:
			k.durations(key, v)
		case !is:
		case d > mostDuration:
			k.warn(key, "%s is more than a year: is the unit right?", d)
		case d > 0 && d < leastDuration && key != "throttle_loads":
			k.warn(key, "%s is less than a millisecond: is the unit right?", d)
		}
	}
	if path != "" {
		return
	}
	for key, most := range map[string]time.Duration{
		"throttle_loads": time.Second, "shutdown_delay": 10 * time.Minute, "sharding.proxy_timeout": time.Minute, "sharding.time_to_converge": 10 * time.Minute,
		"settle": 24 * time.Hour, "zk.session_timeout": 5 * time.Minute,
	} {
		if d := lookUp(table, key).Interface().(time.Duration); d > most && d <= mostDuration {
			k.warn(key, "%s is long: more than %s is hardly meant", d, most)
		}
	}
	for key, least := range map[string]time.Duration{"refresh_period": time.Second, "scrub_period": time.Minute} {
		if d := lookUp(table, key).Interface().(time.Duration); d >= leastDuration && d < least {
			k.warn(key, "%s is short: less than %s is hardly meant", d, least)
		}
	}
}

// lookUp returns the field of a dotted key.
func lookUp(table reflect.Value, key string) reflect.Value {
	for part := range strings.SplitSeq(key, ".") {
		table, _ = fieldOf(table, part)
	}
	return table
}

// sizes warns of numbers that are larger than anything that is run.
func (k *checker) sizes(c *Config) {
	for key, most := range map[string]int{
		"max_connections": 1 << 20, "max_parallel_loads": 1000, "keep_versions": 100,
		"sharding.replication": 100, "sharding.min_nodes": 10_000,
	} {
		if n := lookUp(reflect.ValueOf(*c), key).Interface().(int); n > most {
			k.warn(key, "%d is more than %d, which is hardly meant", n, most)
		}
	}
	if memory := machineMemory(); memory > 0 && c.MaxParallelLoads > 0 && c.Load.Memory > memory/Size(c.MaxParallelLoads) {
		k.warn("max_parallel_loads", "%d loads may need %s each to sort (load.memory): more than the %s of memory of this machine", c.MaxParallelLoads, c.Load.Memory, memory)
	}
}

// leastRate is the smallest bandwidth that is likely to be meant.
const leastRate Rate = 100 << 10

func (k *checker) rates(c *Config) {
	for key, v := range map[string]Rate{
		"max_download_bandwidth_mb_per_second": c.MaxDownloadBandwidth, "load.peer_bandwidth_mb_per_second": c.Load.PeerBandwidth,
	} {
		if v > 0 && v < leastRate {
			k.warn(key, "%s is less than %s: is the unit right?", v, leastRate)
		}
	}
}

// disconnected warns of a node that others cannot reach.
func (k *checker) disconnected(c *Config) {
	host, _, err := net.SplitHostPort(c.Bind)
	bound, parseErr := netip.ParseAddr(host)
	if err != nil || !c.Sharding.Enabled || host != "localhost" && (parseErr != nil || !bound.IsLoopback()) {
		return
	}
	if h := c.Sharding.AdvertisedHostname; h != "localhost" && !isLoopback(h) {
		k.warn("bind", "%q is the loopback interface: nodes on other machines cannot reach this one", c.Bind)
	}
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// isHTTP reports whether a string is an http:// or https:// URL with a host and, maybe, a port.
func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && isPort(u)
}

// isPort reports whether the port of a URL is one, or absent.
func isPort(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" && !strings.HasSuffix(u.Host, ":") || err == nil && n > 0
}

// isShown reports whether a text consists of characters that can be part of a name in ZooKeeper and be printed.
func isShown(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// never warns of a limit that no version can exceed.
func (k *checker) never(key string, limited bool) {
	if limited {
		k.warn(key, "has no effect: nothing can exceed it")
	}
}

// gateEffects warns of rules that hold nothing.
func (k *checker) gateEffects(key string, g *Gate) {
	const longestValue = math.MaxInt32 // of a record
	k.never(key+".max_shrink", g.MaxShrink == 1)
	k.never(key+".max_missing", g.MaxMissing == 1)
	k.never(key+".max_value_size", g.MaxValueSize > longestValue)
}
