package daemon

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"sequins/cluster"
	"sequins/config"
	"sequins/internal/wire"
	"sequins/node"
	"sequins/observe/status"
	"sequins/proxy"
	"sequins/shard"
	"sequins/zk"
)

// joinCluster configures a node of a cluster that others reach by host, if the configuration enables sharding. It does not wait
// for anything.
func (d *Daemon) joinCluster(host string, o *node.Options) error {
	c := d.config.Load()
	if !c.Sharding.Enabled {
		return nil
	}
	s := &c.Sharding
	reached, err := zooKeeperOptions(c, o.Logger)
	if err != nil {
		return err
	}
	id := s.ShardID
	if id == config.ShardIDHost || id == "" && s.Role == "router" { // a router holds no partitions; other nodes choose one
		id = host
	}
	session := zk.Connect(reached)
	d.opened = append(d.opened, session.Close)
	var secure *tls.Config
	if d.keys != nil {
		secure = d.keys.client()
	}
	members := cluster.New(cluster.Options{
		Session: session, ShardID: id, ShardIDFile: filepath.Join(c.LocalStore, "self_assigned_id"), Addr: o.Name, // a name of Stripe's sequins
		Settings: cluster.Settings{
			Replication: s.Replication, Assignment: shard.Assignment(s.Assignment),
			Weight: s.Weight, Zone: s.Zone,
		},
		// Below the mount point of a disk that is away, where nothing must be written, there is no data/. No database can have this name.
		Remembered: filepath.Join(c.LocalStore, "data/_CLUSTER.json"), AskRemembered: s.Secret == "" || secure != nil,
		MinReplication: s.MinReplication, Router: s.Role == "router",
		Converge: s.TimeToConverge, MinNodes: s.MinNodes, HealAfter: s.HealAfter,
		Logger: o.Logger,
	})
	zones := proxy.Zones{Own: s.Zone, Of: members.ZoneOf}
	client := proxy.New(proxy.Options{
		Timeout: s.ProxyTimeout, StageTimeout: cmp.Or(s.ProxyStageTimeout, max(s.ProxyTimeout/time.Duration(s.Replication), time.Millisecond)), TLS: secure,
		Upstream: members.MayBeUpstream, Zones: zones, Metrics: o.Metrics.Proxy, Logger: o.Logger,
	})
	d.opened = append(d.opened, func() error { client.Close(); return nil })
	o.Reads.Proxy, o.Reads.Zones = client, zones
	o.Server.PeerSecret, o.Server.Nodes = s.Secret, wire.NewClient(secure, s.Secret)
	o.Replication, o.MinReplication = s.Replication, s.MinReplication
	o.Cluster, o.ShardID = members, members.ShardID
	o.Server.Peers = func() []status.Peer { return peers(members, o.Name) }
	o.Describe = append(o.Describe, func(st *status.Status) { describe(st, s, members) })
	o.Joining = members.Joining
	return nil
}

// peers returns the other members as they appear in the status.
func peers(members *cluster.Cluster, self string) []status.Peer {
	var others []status.Peer
	for _, m := range members.Members() {
		if m.Addr == self {
			continue
		}
		p := status.Peer{Addr: m.Addr, ShardID: m.ShardID}
		switch {
		case m.Settings != nil:
			p.Zone, p.Weight = m.Settings.Zone, m.Settings.Weight
		case members.Assignment() == shard.RoundRobin:
			p.Weight = 1
		}
		others = append(others, p)
	}
	return others
}

// describe adds the state of the cluster to a status.
func describe(st *status.Status, s *config.Sharding, members *cluster.Cluster) {
	z := members.Status()
	st.Role, st.Zone, st.Assignment, st.Problems = s.Role, s.Zone, members.Assignment(), members.Problems()
	if s.Role != "router" {
		st.Weight = s.Weight
	}
	connected := z.State == zk.Connected || z.State == zk.Closed // a node that leaves closes its session
	st.ZooKeeper = &status.ZooKeeper{
		Connected: connected, Since: z.Since.UTC().Truncate(time.Second),
		Published: z.Published, Pending: z.Pending,
		Sessions: z.Sessions, Nodes: len(members.Members()), Problems: len(st.Problems),
	}
	if connected {
		return
	}
	st.ZooKeeper.Error = z.LastError
	if members.Joining() == nil {
		what := "ZooKeeper, to see nodes join and leave"
		if z.LastError != "" {
			what += " (" + z.LastError + ")"
		}
		st.Waiting = append(st.Waiting, status.Wait{For: status.WaitForZooKeeper, Since: st.ZooKeeper.Since, What: what})
	}
}

// advertisedAddress returns the address by which other nodes reach this one.
func advertisedAddress(host string, bound net.Addr) (string, error) {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", fmt.Errorf("bind: %w", err)
	}
	if host, err = advertisedHost(host); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}

// advertisedHost returns the configured host by which other nodes reach this one, or the machine's
// name.
func advertisedHost(configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("sharding.advertised_hostname is not set, and this machine's name cannot be found out: %w", err)
	}
	return host, nil
}

// zooKeeperOptions returns how ZooKeeper is reached. Connecting to one server takes a part of the timeout of the session, which survives some
// that do not answer.
func zooKeeperOptions(c *config.Config, log *slog.Logger) (o zk.Options, err error) {
	var secure *tls.Config
	if z := &c.ZK; z.TLS {
		files := config.TLS{CA: z.TLSCA, Certificate: z.TLSCertificate, Key: z.TLSKey}
		if secure, err = ClientTLS(files, "zk.tls_ca", "zk.tls_certificate"); err != nil {
			return o, err
		}
	}
	return zk.Options{
		Servers: c.ZK.Servers, ConnectTimeout: max(c.ZK.SessionTimeout/10, time.Second), SessionTimeout: c.ZK.SessionTimeout,
		Root: "/" + c.Sharding.ClusterName + "/v1", Auth: c.ZK.Auth, TLS: secure, Logger: log,
	}, nil
}
