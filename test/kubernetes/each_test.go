//go:build integration

package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// TestEach runs pods that each hold everything, in volumes that are empty in each new pod. Clients need a certificate, which the
// probes have not.
func TestEach(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source")
	expect.NoError(t, os.MkdirAll(filepath.Join(source, db), 0o755))
	publish(t, source, "1")
	ca := newAuthority(t)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	c := newCluster(t, map[string]content{"certificate": ca.issue(t, both, "release-sequins.example.svc")})
	values := `
sharded: false
source: /srv/sequins
replicas: 2
tls: {enabled: true, existingSecret: certificate, clientCertificates: true}
persistence: {enabled: false}
shutdownDelaySeconds: 3
minReadySeconds: 1
resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 1Gi}}
goMaxProcs: 2
config: {settle: 0s, refresh_period: 500ms, load: {memory: 32MiB, memory_limit: 512MiB}}
extraVolumes: [{name: source, hostPath: {path: ` + source + `}}]
extraVolumeMounts: [{name: source, mountPath: /srv/sequins, readOnly: true}]
`
	c.apply(t, values)
	c.scale(t)
	c.waitEndpoints(t)

	pair, err := tls.X509KeyPair([]byte(c.secrets["certificate"]["tls.crt"]), []byte(c.secrets["certificate"]["tls.key"]))
	expect.NoError(t, err)
	withPair := ca.client("release-sequins.example.svc")
	withPair.Certificates = []tls.Certificate{pair}
	newClient := func() *client { return &client{address: c.ips.service + ":9599", tls: withPair} }
	stranger := &client{address: c.ips.service + ":9599", tls: ca.client("release-sequins.example.svc")}
	if a, err := stranger.get("/" + db + "/" + key(0)); err == nil {
		t.Errorf("a client without a certificate gets %+v", a)
	}
	one := newClient()
	defer one.close()
	for i := range keys {
		if a, err := one.get("/" + db + "/" + key(i)); err != nil || a.code != http.StatusOK || a.body != value(i, "1") {
			t.Fatalf("%s: %+v, %v", key(i), a, err)
		}
	}
	l := startLoad(4, newClient)
	defer l.stop()
	c.apply(t, values+"podAnnotations: {restarted: now}\n")
	c.roll(t)
	l.check(t, "a rolling update")
	for _, p := range c.all() {
		if flaps := p.flaps(); len(flaps) > 0 || !p.ready.Load() || !strings.Contains(p.log.String(), `"msg":"load finished"`) {
			t.Errorf("%s is ready %v and has changed by %v, and has to have loaded", p.name, p.ready.Load(), flaps)
		}
	}
}

// TestZoneOfLabel starts a pod that knows its zone by its label, and one whose cluster does not label pods.
func TestZoneOfLabel(t *testing.T) {
	t.Parallel()
	h := harness.Start(t)
	c := newCluster(t, nil)
	c.offerZooKeeper(t, h)
	source := filepath.Join(t.TempDir(), "source")
	expect.NoError(t, os.MkdirAll(filepath.Join(source, db), 0o755))
	publish(t, source, "1")
	c.apply(t, `
source: /srv/sequins
replicas: 1
zookeeper: {servers: [zk.zookeeper.svc]}
config: {settle: 0s, sharding: {time_to_converge: 200ms}}
resources: {requests: {cpu: 100m, memory: 4Gi}, limits: {memory: 4Gi}}
extraVolumes: [{name: source, hostPath: {path: `+source+`}}]
extraVolumeMounts: [{name: source, mountPath: /srv/sequins, readOnly: true}]
`)
	for _, labels := range []bool{true, false} {
		c.labelsZones = labels
		c.scale(t)
		want := map[bool]string{true: zones[0], false: ""}[labels]
		p := c.pod(0)
		one := &client{address: p.host.IP + ":9599"}
		process.Eventually(t, "the pod is in zone "+want, func() bool {
			a, err := one.get("/")
			return err == nil && strings.Contains(a.body, `"zone":"`+want+`"`) == labels
		})
		one.close()
		c.remove(t, 0)
	}
}
