//go:build integration

package kubernetes

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"sequins/test/chart"
)

// probe does what the probes of the container say until it ends.
func (p *pod) probe(ended chan struct{}) {
	if !p.follow(ended, p.container.StartupProbe, func(ok bool, _ int) bool { return ok }) {
		return
	}
	p.work.Go(func() {
		failures := 0
		p.follow(ended, p.container.LivenessProbe, func(ok bool, most int) bool {
			if failures++; ok {
				failures = 0
			}
			if failures == most && !p.deleting.Load() {
				fmt.Fprintf(&p.log, "%s: the liveness probe has failed\n", p.name)
				p.signal(9)
			}
			return false
		})
	})
	failures := 0
	p.follow(ended, p.container.ReadinessProbe, func(ok bool, most int) bool {
		if failures++; ok {
			failures = 0
			p.setReady(true, "")
		}
		if failures == most {
			p.setReady(false, "the readiness probe has failed")
		}
		return false
	})
}

// follow probes in the period of the probe until the container ends, or done returns true; then it returns true, too.
func (p *pod) follow(ended chan struct{}, probe chart.Probe, done func(ok bool, failureThreshold int) bool) bool {
	tick := time.NewTicker(time.Duration(probe.PeriodSeconds) * time.Second)
	defer tick.Stop()
	for {
		if done(p.ask(probe), probe.FailureThreshold) {
			return true
		}
		select {
		case <-tick.C:
		case <-ended:
			return false
		}
	}
}

// ask does one probe. As the kubelet does, it does not check the certificate.
func (p *pod) ask(probe chart.Probe) bool {
	port := 0
	for _, c := range p.container.Ports {
		if c.Name == probe.HTTPGet.Port {
			port = c.ContainerPort
		}
	}
	scheme := strings.ToLower(probe.HTTPGet.Scheme)
	if scheme == "" {
		scheme = "http"
	}
	client := http.Client{Timeout: time.Duration(max(1, probe.TimeoutSeconds)) * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Get(fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(p.host.IP, fmt.Sprint(port)), probe.HTTPGet.Path))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode < 400
}

// setReady changes whether the pod is ready, and tells the services.
func (p *pod) setReady(ready bool, why string) {
	if p.ready.Swap(ready) == ready {
		return
	}
	p.mu.Lock()
	p.changes = append(p.changes, fmt.Sprintf("%s %v %s", time.Now().Format("15:04:05.000"), ready, why))
	p.mu.Unlock()
	p.c.publish()
}

// flaps are the changes of readiness after the first.
func (p *pod) flaps() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes[min(1, len(p.changes)):]
}
