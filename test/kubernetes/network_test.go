//go:build integration

package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sequins/test/chart"
	"sequins/test/expect"
	"sequins/test/process"
)

// nodeIP is the address on this side of the bridge from which probes and clients come.
const nodeIP = "10.77.0.1"

// maxClusters is how many clusters the tests make.
const maxClusters = 8

// addresses are those of a cluster for what is outside of its pods.
type addresses struct{ dns, zookeeper, service string }

// addressesOf returns the addresses of a cluster, which has a number from 1.
func addressesOf(number int64) addresses {
	ip := func(last int64) string { return fmt.Sprintf("10.77.0.%d", 10*number+last) }
	return addresses{dns: ip(0), zookeeper: ip(1), service: ip(2)}
}

// A service passes each connection on to a random one of its endpoints, as kube-proxy does.
type service struct {
	work sync.WaitGroup

	mu        sync.Mutex
	version   int
	endpoints []string // addresses
	conns     map[net.Conn]bool
	listeners []net.Listener
}

// newService makes a service without addresses, until the test ends.
func newService(t testing.TB) *service {
	s := &service{conns: map[net.Conn]bool{}}
	t.Cleanup(s.close)
	return s
}

// addService makes a service of the chart, unless it has no address, or is there.
func (c *cluster) addService(t testing.TB, o chart.Object) {
	t.Helper()
	var spec struct {
		ClusterIP string
		Ports     []struct {
			Name, TargetPort string
			Port             int
		}
	}
	expect.NoError(t, json.Unmarshal(o.Spec, &spec))
	if spec.ClusterIP == "None" || c.services[o.Metadata.Name] != nil {
		return
	}
	s := newService(t)
	for _, port := range spec.Ports {
		for _, p := range c.set.Template.Spec.Containers[0].Ports {
			if p.Name == port.TargetPort {
				s.listen(t, fmt.Sprintf("%s:%d", c.ips.service, port.Port), p.ContainerPort)
			}
		}
	}
	c.services[o.Metadata.Name] = s
}

// listen passes connections to an address on to a port of the endpoints.
func (s *service) listen(t testing.TB, address string, port int) {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	expect.NoError(t, err)
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	s.mu.Unlock()
	s.work.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			s.work.Go(func() { s.pass(client, port) })
		}
	})
}

// set changes the endpoints, unless they are of a newer version already.
func (s *service) set(version int, endpoints []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version > s.version {
		s.version, s.endpoints = version, endpoints
	}
}

// pass copies both directions of a connection. Without an endpoint it is closed.
func (s *service) pass(client net.Conn, port int) {
	defer s.forget(client)
	s.mu.Lock()
	s.conns[client] = true
	if len(s.endpoints) == 0 {
		s.mu.Unlock()
		return
	}
	endpoint := s.endpoints[rand.N(len(s.endpoints))]
	s.mu.Unlock()
	pod, err := net.DialTimeout("tcp", net.JoinHostPort(endpoint, fmt.Sprint(port)), process.Deadline)
	if err != nil {
		return
	}
	defer s.forget(pod)
	s.mu.Lock()
	s.conns[pod] = true
	s.mu.Unlock()
	s.work.Go(func() {
		_, _ = io.Copy(pod, client) // what fails is that the other side has gone
		_ = pod.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(client, pod)
}

func (s *service) forget(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// cut closes all connections and lets no new ones through, until endpoints are set again.
func (s *service) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = nil
	for conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *service) close() {
	for _, ln := range s.listeners {
		_ = ln.Close()
	}
	s.cut()
	s.work.Wait()
}

// dns is a real DNS server, which knows the names of the pods.
type dns struct {
	hosts string // its file
	cmd   *exec.Cmd

	mu      sync.Mutex
	version int
	others  map[string]string
}

// startDNS runs a DNS server until the test ends.
func startDNS(t testing.TB, dir string, ips addresses) *dns {
	t.Helper()
	d := &dns{hosts: filepath.Join(dir, "hosts"), others: map[string]string{"zk.zookeeper.svc." + clusterDomain: ips.zookeeper}}
	d.write(t, nil)
	d.cmd = exec.Command("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--addn-hosts="+d.hosts,
		"--local=/"+clusterDomain+"/", "--listen-address="+ips.dns, "--bind-interfaces", "--user=root", "--pid-file=", "--log-facility=-", "--local-ttl=5")
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said expect.Output
	d.cmd.Stdout, d.cmd.Stderr = &said, &said
	expect.NoError(t, d.cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = d.cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // fails if it has ended
		<-ended
		if t.Failed() {
			t.Logf("the DNS server says:\n%s", said.String())
		}
	})
	return d
}

// set changes the names of pods, unless they are of a newer version already.
func (d *dns) set(version int, names map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if version <= d.version {
		return
	}
	d.version = version
	if err := d.put(names); err == nil {
		_ = d.cmd.Process.Signal(syscall.SIGHUP) // fails if it has ended
	}
}

func (d *dns) write(t testing.TB, names map[string]string) {
	t.Helper()
	expect.NoError(t, d.put(names))
}

func (d *dns) put(names map[string]string) error {
	var b strings.Builder
	for _, all := range []map[string]string{d.others, names} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "%s %s\n", all[name], name)
		}
	}
	return os.WriteFile(d.hosts, []byte(b.String()), 0o644)
}
