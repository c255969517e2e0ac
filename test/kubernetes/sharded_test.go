//go:build integration

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

const (
	readerToken  = "reader-reader-reader"
	monitorToken = "monitor-monitor-monitor"
)

// sharded is a cluster whose pods divide the data, with everything that protects it: certificates, tokens and secrets.
type sharded struct {
	*cluster
	ca        *authority
	source    string
	zookeeper *harness.Harness
	values    string
}

// newSharded installs the chart. Nothing runs yet.
func newSharded(t testing.TB) *sharded {
	t.Helper()
	s := &sharded{ca: newAuthority(t), source: filepath.Join(t.TempDir(), "source"), zookeeper: harness.Start(t)}
	expect.NoError(t, os.MkdirAll(filepath.Join(s.source, db), 0o755))
	s.cluster = newCluster(t, map[string]content{
		"zookeeper": {"auth": "sequins:password"},
		"cluster":   {"secret": "secret-of-the-cluster"},
		"tokens":    {"tokens": "reader " + readerToken + " *\nmonitor " + monitorToken + " * pages\n"},
	})
	s.labelsZones = true
	s.offerZooKeeper(t, s.zookeeper)

	// What is less than the defaults is it so that the test does not take long.
	s.values = `
source: /srv/sequins
zookeeper:
  servers: ["zk.zookeeper.svc:2181"]
  auth: {existingSecret: zookeeper}
clusterSecret: {existingSecret: cluster}
tokens: {existingSecret: tokens}
tls: {enabled: true, certManager: {enabled: true, issuerRef: {name: ca}}}
shutdownDelaySeconds: 3
minReadySeconds: 3
resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 1Gi}}
goMaxProcs: 2
extraVolumes: [{name: source, hostPath: {path: ` + s.source + `}}]
extraVolumeMounts: [{name: source, mountPath: /srv/sequins, readOnly: true}]
config:
  settle: 0s
  refresh_period: 1s
  version_remove_timeout: 2s
  load: {memory: 32MiB, memory_limit: 512MiB}
  # This machine may stand still for longer than the default.
  sharding: {time_to_converge: 1s, heal_after: 5s, proxy_timeout: 3s, proxy_stage_timeout: 300ms}
  zk: {session_timeout: 4s}
`
	s.upgrade(t, "")
	return s
}

// offerZooKeeper starts a server, which the pods reach by the name zk.zookeeper.svc.
func (c *cluster) offerZooKeeper(t testing.TB, h *harness.Harness) {
	t.Helper()
	_, port, _ := net.SplitHostPort(h.Do(t, "zk start n=1")["connect"])
	number, err := strconv.Atoi(port)
	expect.NoError(t, err)
	s := newService(t)
	s.set(1, []string{"127.0.0.1"})
	s.listen(t, c.ips.zookeeper+":2181", number)
}

// upgrade applies the values with more of them. It changes no pods.
func (s *sharded) upgrade(t testing.TB, more string) {
	t.Helper()
	s.values += more
	s.apply(t, s.values)
	for _, o := range s.objects.Of("Certificate") {
		name, pair := s.ca.fulfil(t, o)
		s.secrets[name] = pair
	}
}

// podClient asks one pod, by its name.
func (s *sharded) podClient(p *pod, token string) *client {
	return &client{address: p.host.IP + ":9599", token: token, tls: s.ca.client(p.name + ".release-sequins-nodes.example.svc.cluster.local")}
}

// serviceClient asks the service for clients.
func (s *sharded) serviceClient() *client {
	return &client{address: s.ips.service + ":9599", token: readerToken, tls: s.ca.client("release-sequins.example.svc")}
}

// waitServed waits until each pod answers from a version.
func (s *sharded) waitServed(t testing.TB, version string) {
	t.Helper()
	for _, p := range s.all() {
		process.Eventually(t, p.name+" serves "+version, func() bool {
			c := s.podClient(p, readerToken)
			defer c.close()
			a, err := c.get("/" + db + "/" + key(0))
			return err == nil && a.version == version
		})
	}
}

// checkKeys reads every key from every pod and from the service.
func (s *sharded) checkKeys(t testing.TB, version string) {
	t.Helper()
	clients := map[string]*client{"the service": s.serviceClient()}
	for _, p := range s.all() {
		clients[p.name] = s.podClient(p, readerToken)
	}
	for name, c := range clients {
		for i := range keys {
			a, err := c.get("/" + db + "/" + key(i))
			if err != nil || a.code != 200 || a.body != value(i, version) || a.version != version {
				t.Errorf("%s: %s is %+v, %v", name, key(i), a, err)
				break
			}
		}
		c.close()
	}
}

// status is what a pod says of the cluster.
type status struct {
	ShardID string `json:"shard_id"`
	Zone    string
	DBs     map[string]struct {
		Versions map[string]struct {
			Missing          int `json:"missing_partitions"`
			Underreplicated  int `json:"underreplicated_partitions"`
			Overreplicated   int `json:"overreplicated_partitions"`
			Nodes            map[string]struct{ Partitions []int }
			ReplicationCount map[string]int `json:"replication_histogram"`
		}
	}
}

func (s *sharded) status(t testing.TB, p *pod) status {
	t.Helper()
	c := s.podClient(p, monitorToken)
	defer c.close()
	a, err := c.get("/")
	var st status
	if err == nil {
		err = json.Unmarshal([]byte(a.body), &st)
	}
	if err != nil {
		t.Fatalf("the status of %s: %v: %s", p.name, err, a.body)
	}
	return st
}

// holders are the pods that hold each partition of a version, as a pod sees it.
func (st status) holders(version string) (byPartition [partitions][]string) {
	for node, held := range st.DBs[db].Versions[version].Nodes {
		name, _, _ := strings.Cut(node, ".")
		for _, p := range held.Partitions {
			byPartition[p] = append(byPartition[p], name)
		}
	}
	return byPartition
}

// waitWhole waits until each partition of a version is held by two pods of those that there are, in two zones.
func (s *sharded) waitWhole(t testing.TB, version string) {
	t.Helper()
	var names, wrong []string
	zone := map[string]string{}
	for _, p := range s.all() {
		names = append(names, p.name)
		st := s.status(t, p)
		if zone[p.name] = st.Zone; st.ShardID != p.name || st.Zone == "" {
			t.Errorf("%s has shard id %q and zone %q", p.name, st.ShardID, st.Zone)
		}
	}
	defer func() {
		if t.Failed() {
			t.Log(wrong)
		}
	}()
	process.Eventually(t, version+" is whole", func() bool {
		wrong = nil
		share := map[string]int{}
		for p, held := range s.status(t, s.pod(0)).holders(version) {
			for _, name := range held {
				share[name]++
			}
			if len(held) != 2 || zone[held[0]] == zone[held[1]] || !slices.Contains(names, held[0]) || !slices.Contains(names, held[1]) {
				wrong = append(wrong, fmt.Sprintf("partition %d is held by %v", p, held))
			}
		}
		for _, name := range names {
			if share[name] == 0 {
				wrong = append(wrong, name+" holds nothing")
			}
		}
		return len(wrong) == 0
	})
}

// checkSteady fails the test if the readiness of a pod has changed since it became ready first, or its container was restarted.
func (s *sharded) checkSteady(t testing.TB, when string) {
	t.Helper()
	for _, p := range s.all() {
		if flaps := p.flaps(); len(flaps) > 0 || p.restarts.Load() > 0 || !p.ready.Load() {
			t.Errorf("%s: %s is ready %v, has changed by %v, and restarted %d times", when, p.name, p.ready.Load(), flaps, p.restarts.Load())
		}
	}
}

// TestSharded is the life of a release: it is installed, upgraded, scaled, loses a volume, and its ZooKeeper goes away, under a
// load of which no request fails.
func TestSharded(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	publish(t, s.source, "1")
	s.scale(t)
	s.waitServed(t, "1")
	s.waitWhole(t, "1")
	s.waitEndpoints(t)
	s.checkKeys(t, "1")
	s.checkSteady(t, "installed")
	s.checkCommands(t)

	l := startLoad(8, s.serviceClient)
	defer l.stop()
	publish(t, s.source, "2")
	s.waitServed(t, "2")
	l.check(t, "a new version")
	s.checkSteady(t, "a new version")

	s.upgrade(t, "  batch: {max_bytes: 32MiB}\n")
	s.roll(t)
	l.check(t, "a rolling update")
	s.checkSteady(t, "a rolling update")
	s.waitWhole(t, "2")

	s.remove(t, 1)
	expect.NoError(t, os.RemoveAll(s.claim("store", s.name+"-1")))
	s.create(t, 1)
	s.waitReady(t, 1)
	s.waitWhole(t, "2")
	l.check(t, "a pod has lost its volume")

	s.upgrade(t, "replicas: 4\n")
	s.scale(t)
	s.waitWhole(t, "2")
	s.checkKeys(t, "2")
	l.check(t, "scaled up")

	s.values = strings.Replace(s.values, "replicas: 4\n", "", 1)
	s.upgrade(t, "")
	s.scale(t)
	s.waitWhole(t, "2")
	s.checkKeys(t, "2")
	l.check(t, "scaled down")

	s.zookeeper.Do(t, "zk kill i=0")
	for _, p := range s.all() {
		process.Eventually(t, p.name+" has noticed that ZooKeeper is gone", func() bool {
			return strings.Contains(s.metrics(t, p), "sequins_zookeeper_connected 0")
		})
	}
	s.zookeeper.Do(t, "zk restart i=0")
	publish(t, s.source, "3")
	s.waitServed(t, "3")
	s.checkKeys(t, "3")
	l.check(t, "ZooKeeper was away")
	s.checkSteady(t, "ZooKeeper was away")

	s.rotate(t)
	l.check(t, "certificates and tokens are replaced")

	// The volume of the pod that was removed has version 2.
	l.since("3")
	s.upgrade(t, "replicas: 4\n")
	s.scale(t)
	s.waitWhole(t, "3")
	l.check(t, "scaled up with an old volume")

	s.crash(t)
	s.checkKeys(t, "3")
}

// checkCommands runs commands of the program in a container, where they find the configuration of the node.
func (s *sharded) checkCommands(t testing.TB) {
	t.Helper()
	p := s.pod(1)
	for _, test := range []struct {
		want      string
		env, args []string
	}{
		{"Serving 1 database", nil, []string{"status", "--token-file", "-"}},
		{"release-sequins-1.release-sequins-nodes.example.svc.cluster.local", nil, []string{"config"}},
		{"words", nil, []string{"versions"}},
		{"sequins.conf is good", nil, []string{"check-config"}},
		// The memory of the machine is that of the container.
		{"SEQUINS_LOAD_MEMORY_LIMIT: 2GiB is more than the 1GiB of memory of this machine or its container", []string{"SEQUINS_LOAD_MEMORY_LIMIT=2GiB"}, []string{"check-config"}},
	} {
		if out := p.exec(t, monitorToken, test.env, test.args...); !strings.Contains(out, test.want) {
			t.Errorf("%v prints\n%s\nwant %s", test.args, out, test.want)
		}
	}
}

// metrics asks the listener for metrics.
func (s *sharded) metrics(t testing.TB, p *pod) string {
	t.Helper()
	c := &client{address: p.host.IP + ":9598"}
	defer c.close()
	a, err := c.get("/metrics")
	expect.NoError(t, err)
	return a.body
}

// rotate replaces the certificate and adds a token. The pods read both again, without a restart.
func (s *sharded) rotate(t testing.TB) {
	t.Helper()
	const token = "another-another-another"
	s.secrets["tokens"] = content{"tokens": s.secrets["tokens"]["tokens"] + "another " + token + " *\n"}
	s.upgrade(t, "") // which issues a certificate
	for _, p := range s.all() {
		p.publishFiles(t, p.volumes["secrets"])
		process.Eventually(t, p.name+" takes the new token and has the new certificate", func() bool {
			c := s.podClient(p, token)
			defer c.close()
			a, err := c.get("/" + db + "/" + key(0))
			return err == nil && a.code == 200 && strings.Contains(p.log.String(), "the certificates have changed")
		})
	}
}

// crash kills the process of a pod. The container starts again in the same pod, with the same files: nothing is loaded.
func (s *sharded) crash(t testing.TB) {
	t.Helper()
	p := s.pod(2)
	loads := strings.Count(p.log.String(), `"msg":"load started"`)
	p.signal(syscall.SIGKILL)
	process.Eventually(t, p.name+" has been restarted", func() bool { return p.restarts.Load() == 1 && p.ready.Load() })
	if n := strings.Count(p.log.String(), `"msg":"load started"`); n != loads || loads == 0 {
		t.Errorf("%d loads before the crash, %d after it", loads, n)
	}
}
