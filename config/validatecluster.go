package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Weights outside this range are considered mistakes.
const minWeight, maxWeight = 0.01, 1000.0

var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

func (k *checker) sharding(s *Sharding) {
	k.atLeast("sharding.replication", int64(s.Replication), 1)
	k.atLeast("sharding.min_replication", int64(s.MinReplication), 1)
	if s.MinReplication > s.Replication && s.Replication >= 1 {
		k.problem("sharding.min_replication", "%d is more than sharding.replication, %d", s.MinReplication, s.Replication)
	}
	k.notNegative("sharding.time_to_converge", s.TimeToConverge)
	k.positive("sharding.proxy_timeout", s.ProxyTimeout)
	k.notNegative("sharding.proxy_stage_timeout", s.ProxyStageTimeout)
	if s.Enabled && s.ProxyStageTimeout >= s.ProxyTimeout {
		k.warn("sharding.proxy_stage_timeout", "%s is not less than sharding.proxy_timeout, %s: only one node is asked unless it fails", s.ProxyStageTimeout, s.ProxyTimeout)
	}
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
	if first, _, _ := strings.Cut(s.ClusterName, "/"); first == "zookeeper" {
		k.problem("sharding.cluster_name", "%q is below /zookeeper, where ZooKeeper keeps its own znodes", s.ClusterName)
	}
	// They become part of names in ZooKeeper, between separators.
	if strings.ContainsAny(s.ShardID, "/@") || !isShown(s.ShardID) {
		k.problem("sharding.shard_id", "%q must not have a / or @ or characters that are not printed", s.ShardID)
	}
	if s.Zone != "" && s.ZoneFile != "" {
		k.problem("sharding.zone_file", "is set, and so is zone")
	}
	if err := CheckZone(s.Zone); err != nil {
		k.problem("sharding.zone", "%v", err)
	}
	if h := s.AdvertisedHostname; h != "" && !isHost(h) {
		k.problem("sharding.advertised_hostname", "%q is neither a host name nor an IP address; the port is that of bind", h)
	} else if h != "" && isEvery(h) {
		k.problem("sharding.advertised_hostname", "%q is no address that other nodes can connect to", h)
	}
	if !s.Enabled {
		k.withoutEffect("sharding", Default().Sharding, *s)
		return
	}
	if s.Assignment == "round_robin" && s.Weight != 1 {
		k.warn("sharding.weight", "has no effect: sharding.assignment is round_robin")
	}
	if s.Assignment == "round_robin" && s.Zone != "" {
		k.warn("sharding.zone", "is only shown: sharding.assignment is round_robin, which puts replicas into any zones")
	}
}

// withoutEffect warns of keys of a table that are not the defaults, although sharding.enabled is false.
func (k *checker) withoutEffect(table string, standard, now any) {
	for _, c := range changes(table, reflect.ValueOf(standard), reflect.ValueOf(now)) {
		if c.Key != "sharding.cluster_name" { // a tag of metrics, too
			k.warn(c.Key, "has no effect: sharding.enabled is false")
		}
	}
}

// hostName is what a name of a host may be, with the _ that some have.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || len(s) <= 254 && hostName.MatchString(s)
}

// isServer reports whether a string is a host with or without a port.
func isServer(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return isHost(s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return isHost(host) && err == nil && n > 0
}

// maxZone limits the name of a zone, in bytes: all nodes read those of all others.
const maxZone = 255

// CheckZone returns an error if a string cannot be the name of a zone.
func CheckZone(s string) error {
	if len(s) > maxZone || !utf8.ValidString(s) || !isShown(s) {
		return fmt.Errorf("is not one line of at most %d bytes of characters that are printed", maxZone)
	}
	return nil
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

// CheckUser returns an error if a string is not a user and a password.
func CheckUser(s string) error {
	if user, _, ok := strings.Cut(s, ":"); !ok || user == "" {
		return errors.New("is not of the form user:password")
	}
	return nil
}

func (k *checker) zk(z *ZK, enabled bool) {
	k.positive("zk.session_timeout", z.SessionTimeout)
	if z.SessionTimeout > 0 && z.SessionTimeout < time.Millisecond {
		k.problem("zk.session_timeout", "must be at least 1ms, not %s", z.SessionTimeout)
	}
	if enabled && len(z.Servers) == 0 {
		k.problem("zk.servers", "is empty, and sharding is enabled")
	}
	for i, server := range z.Servers {
		if !isServer(server) {
			k.problem("zk.servers", "%q is not an address of the form host:port", shownURL(server))
		} else if slices.Contains(z.Servers[:i], server) {
			k.warn("zk.servers", "%q is there twice", server)
		}
	}
	if z.Auth != "" && z.AuthFile != "" {
		k.problem("zk.auth_file", "is set, and so is auth")
	}
	if z.Auth != "" {
		if err := CheckUser(z.Auth); err != nil {
			k.problem("zk.auth", "%v", err)
		}
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
	if z.TLSCertificate != "" && z.TLSKey != "" && !z.TLS {
		k.problem("zk.tls_certificate", "is set, and tls is not")
	}
}
