//go:build integration

package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/chart"
	"sequins/test/expect"
	"sequins/test/process"
)

const (
	namespace     = "example" // that chart.Template renders for
	clusterDomain = "cluster.local"
	// lag is how long the services and the DNS take to notice a change of the pods.
	lag = time.Second
)

// zones are those of the nodes that the pods run on, in turn.
var zones = []string{"eu-1a", "eu-1b", "eu-1c"}

// A cluster is the part of Kubernetes that a release of the chart needs.
type cluster struct {
	namespace string
	ips       addresses
	dir       string // for everything that the nodes have
	program   string
	configs   map[string]content
	secrets   map[string]content
	// labelsZones makes pods have the label of their node's zone, as from Kubernetes 1.35 on.
	labelsZones bool

	objects  chart.Objects
	name     string // of the StatefulSet
	set      chart.StatefulSet
	services map[string]*service // those with an address, by name

	dns     *dns
	mu      sync.Mutex
	pods    map[int]*pod // by ordinal
	version int          // of what publish tells
	work    sync.WaitGroup
}

var clusters atomic.Int64

// newCluster makes a cluster without a release.
func newCluster(t testing.TB, secrets map[string]content) *cluster {
	t.Helper()
	c := &cluster{namespace: namespace, ips: addressesOf(clusters.Add(1)), dir: t.TempDir(), secrets: secrets, configs: map[string]content{}, pods: map[int]*pod{}, services: map[string]*service{}}
	c.program = filepath.Join(c.dir, "sequins")
	program, err := os.ReadFile(process.Binary(t))
	if err == nil {
		err = os.WriteFile(c.program, program, 0o755)
	}
	expect.NoError(t, err)
	c.dns = startDNS(t, c.dir, c.ips)
	t.Cleanup(c.work.Wait)
	return c
}

// apply installs or upgrades the release with values. It changes no pods.
func (c *cluster) apply(t testing.TB, values string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	text, err := chart.Template("release", "--values", file)
	expect.NoError(t, err)
	objects, err := chart.Parse(text)
	expect.NoError(t, err)
	meta, set, err := objects.StatefulSet()
	expect.NoError(t, err)
	c.objects, c.name, c.set = objects, meta.Name, set
	for _, o := range objects.Of("ConfigMap") {
		c.configs[o.Metadata.Name] = o.Data
	}
	for _, o := range objects.Of("Service") {
		c.addService(t, o)
	}
}

// claim is the directory of a claim of a pod's. It is that of the pod which had the name before.
func (c *cluster) claim(claim, pod string) string {
	return filepath.Join(c.dir, "claims", claim+"-"+pod)
}

// scale creates or removes pods until there are as many as the StatefulSet says, in its order, and waits until all are ready.
func (c *cluster) scale(t testing.TB) {
	t.Helper()
	for ordinal := range c.set.Replicas {
		if c.pod(ordinal) != nil {
			continue
		}
		c.create(t, ordinal)
		if c.set.PodManagementPolicy != "Parallel" {
			c.waitReady(t, ordinal)
		}
	}
	var removed sync.WaitGroup
	for _, ordinal := range slices.Backward(c.ordinals()) {
		if ordinal < c.set.Replicas {
			c.waitReady(t, ordinal)
			continue
		}
		if c.set.PersistentVolumeClaimRetentionPolicy.WhenScaled != "Retain" {
			t.Fatal("volumes are not removed here")
		}
		removed.Go(func() { c.remove(t, ordinal) }) // in parallel, if there are several
	}
	removed.Wait()
}

// roll updates the pods as a StatefulSet does: from the last to the first, each when the one before has been ready for long enough.
func (c *cluster) roll(t testing.TB) {
	t.Helper()
	for ordinal := c.set.Replicas - 1; ordinal >= 0; ordinal-- {
		c.remove(t, ordinal)
		c.create(t, ordinal)
		p := c.waitReady(t, ordinal)
		since := time.Now()
		process.Eventually(t, fmt.Sprintf("%s is available", p.name), func() bool {
			if !p.ready.Load() {
				since = time.Now()
			}
			return time.Since(since) >= time.Duration(c.set.MinReadySeconds)*time.Second
		})
	}
}

func (c *cluster) pod(ordinal int) *pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[ordinal]
}

func (c *cluster) ordinals() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pods))
}

// all are the pods in the order of their ordinals.
func (c *cluster) all() (pods []*pod) {
	for _, ordinal := range c.ordinals() {
		pods = append(pods, c.pod(ordinal))
	}
	return pods
}

func (c *cluster) create(t testing.TB, ordinal int) {
	t.Helper()
	p := c.newPod(t, fmt.Sprintf("%s-%d", c.name, ordinal), zones[ordinal%len(zones)])
	c.mu.Lock()
	c.pods[ordinal] = p
	c.mu.Unlock()
	c.publish()
}

// remove deletes a pod, which is out of the services from then on, and waits until it is gone.
func (c *cluster) remove(t testing.TB, ordinal int) {
	p := c.pod(ordinal)
	p.deleting.Store(true)
	c.publish()
	p.terminate(t)
	c.mu.Lock()
	delete(c.pods, ordinal)
	c.mu.Unlock()
	c.publish()
}

func (c *cluster) waitReady(t testing.TB, ordinal int) *pod {
	t.Helper()
	p := c.pod(ordinal)
	process.Eventually(t, p.name+" is ready", p.ready.Load)
	return p
}

// waitEndpoints waits until the services pass connections on to all pods.
func (c *cluster) waitEndpoints(t testing.TB) {
	t.Helper()
	for name, s := range c.services {
		process.Eventually(t, name+" leads to all pods", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.endpoints) == c.set.Replicas
		})
	}
}

// publish tells the services and the DNS of the pods, after the lag.
func (c *cluster) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ready []string
	names := map[string]string{}
	for _, p := range c.pods {
		// The headless service publishes addresses that are not ready.
		names[strings.Join([]string{p.name, c.set.ServiceName, c.namespace, "svc", clusterDomain}, ".")] = p.host.IP
		if p.ready.Load() && !p.deleting.Load() {
			ready = append(ready, p.host.IP)
		}
	}
	c.version++
	version := c.version
	c.work.Go(func() {
		<-time.After(lag)
		for _, s := range c.services {
			s.set(version, ready)
		}
		c.dns.set(version, names)
	})
}
