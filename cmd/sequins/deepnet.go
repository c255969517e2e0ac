package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sequins/internal/human"
	"sequins/store"
	"sequins/zk"
)

// checkAddress listens on an address for a moment. One that is in use may be in use by the sequins of this configuration.
func (d *deep) checkAddress(key, address string) finding {
	var opened closers
	_, err := listen(key, address, &opened)
	if owner := store.Owner(d.c.LocalStore); errors.Is(err, unix.EADDRINUSE) && owner != 0 {
		return found("%s is in use, and so is the local store, by process %d", address, owner)
	}
	if err = errors.Join(err, opened.Close()); err != nil {
		return failed("%v", err)
	}
	return found("%s can be used", address)
}

// probeTime is how long a server of ZooKeeper may take to begin a session.
const probeTime = 5 * time.Second

// ensemble is what the servers of ZooKeeper have said.
type ensemble struct {
	existed      bool
	others       []string // addresses of the other nodes
	withThisNode int      // number of nodes, with this one
	unreachable  []error  // of single servers
}

// probeZooKeeper asks each server of ZooKeeper. The error is that of all, if none can be used.
func (d *deep) probeZooKeeper(ctx context.Context) (e ensemble, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	o, err := zooKeeperOptions(d.c, nil)
	if err != nil {
		return e, err
	}
	reports, errs := make([]zk.ProbeReport, len(o.Servers)), make([]error, len(o.Servers))
	var all sync.WaitGroup
	for i, server := range o.Servers {
		all.Go(func() {
			one := o
			one.Servers = []string{server}
			reports[i], errs[i] = zk.Probe(ctx, one)
		})
	}
	all.Wait()
	for i, r := range reports {
		if errs[i] != nil {
			e.unreachable = append(e.unreachable, fmt.Errorf("%s: %w", o.Servers[i], errs[i]))
			continue
		}
		e.existed, e.others = r.Existed, nil
		for _, name := range r.Nodes {
			if _, addr, err := zk.ParseNode(name); err == nil && addr != d.self() {
				e.others = append(e.others, addr)
			}
		}
		e.withThisNode = len(e.others) + 1
	}
	if e.withThisNode == 0 {
		return e, errors.Join(e.unreachable...)
	}
	return e, nil
}

// self is the address by which other nodes know this one, "" if it is not known.
func (d *deep) self() string {
	host, err := advertisedHost(d.c.Sharding.AdvertisedHostname)
	_, port, splitErr := net.SplitHostPort(d.c.Bind)
	if err != nil || splitErr != nil {
		return ""
	}
	return net.JoinHostPort(host, port)
}

func (d *deep) checkZooKeeper(context.Context) finding {
	e, err := d.zk()
	root := "/" + d.c.Sharding.ClusterName + "/v1"
	switch {
	case err != nil:
		return failed("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(e.unreachable) > 0:
		return warned("%d of %s cannot be used: %v", len(e.unreachable), human.Plural(len(d.c.ZK.Servers), "server"), e.unreachable[0])
	case e.existed:
		return found("this node may create znodes below %s; other nodes there: %d", root, len(e.others))
	}
	return found("this node may create %s; there is no such cluster yet", root)
}

// checkAdvertised resolves the advertised name, as other nodes do on their machines.
func (d *deep) checkAdvertised(ctx context.Context) finding {
	host, err := advertisedHost(d.c.Sharding.AdvertisedHostname)
	if err != nil {
		return failedBy(err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return failedBy(err)
	}
	if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !a.Unmap().IsLoopback() }) {
		return warned("%s is %v, the loopback interface: on other machines that is themselves, or their DNS has another address (see /etc/hosts)", host, addrs)
	}
	return found("%s is %v", host, addrs)
}

const (
	// maxSkew is the difference between clocks above which a warning is given. The clock of an answer has seconds.
	maxSkew = 3 * time.Second
	// maxNodesAsked limits the nodes that are asked.
	maxNodesAsked = 50
)

// checkNodes asks the other nodes of the cluster whether they are alive, and compares their clocks with that of this machine.
func (d *deep) checkNodes(ctx context.Context) finding {
	e, err := d.zk()
	if err != nil {
		return warned("they are not known, as ZooKeeper cannot be used")
	}
	if len(e.others) == 0 {
		return found("there are none in ZooKeeper")
	}
	keys, err := readKeyring(d.c.TLS, discard())
	if err != nil {
		return failedBy(err)
	}
	transport, scheme := &http.Transport{DisableKeepAlives: true}, "http"
	if keys != nil {
		transport.TLSClientConfig, scheme = keys.client(), "https"
	}
	client := &http.Client{Timeout: checkTime / 3, Transport: transport}
	asked := e.others[:min(len(e.others), maxNodesAsked)]
	errs := make([]error, len(asked))
	var all sync.WaitGroup
	for i, addr := range asked {
		all.Go(func() { errs[i] = askNode(ctx, client, scheme+"://"+addr) })
	}
	all.Wait()
	wrong := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(wrong) > 0 {
		return warned("%d of %s: %v", len(wrong), human.Plural(len(asked), "node"), wrong[0])
	}
	if r := d.c.Sharding.Replication; r > e.withThisNode {
		return warned("%s with this one cannot hold sharding.replication, %d, replicas of a partition", human.Plural(e.withThisNode, "node"), r)
	}
	return found("all %d answer", len(asked))
}

func askNode(ctx context.Context, client *http.Client, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/livez", nil)
	if err != nil {
		return err
	}
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // it was not read
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if took := time.Since(begin); err == nil && time.Since(theirs).Abs() > maxSkew+took {
		return fmt.Errorf("the clock of %s differs from that of this machine by %s: synchronize both", base, time.Since(theirs).Round(time.Second))
	}
	return nil
}

// receiverChecks connect to those that are told events, spans and metrics. Nothing is sent to them.
func (d *deep) receiverChecks() []deepCheck {
	var all []deepCheck
	add := func(key, value, ca string, dial func(ctx context.Context, value, ca string) error) {
		if value == "" {
			return
		}
		all = append(all, deepCheck{key, func(ctx context.Context) finding {
			if err := dial(ctx, value, ca); err != nil {
				return failedBy(err)
			}
			return found("it can be reached")
		}})
	}
	add("events.webhook", d.c.Events.Webhook, "", dialURL)
	add("tracing.otlp_endpoint", d.c.Tracing.OTLPEndpoint, os.Getenv("OTEL_EXPORTER_OTLP_CERTIFICATE"), dialURL)
	add("datadog.url", d.c.Datadog.URL, "", dialAgent)
	return all
}

// dialURL connects to the host of a URL, with TLS for https. Its error shows only the host, because the rest can hold a password.
func dialURL(ctx context.Context, raw, ca string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it is not a URL")
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
	dial := new(net.Dialer).DialContext
	if u.Scheme == "https" {
		pool, err := readPool("OTEL_EXPORTER_OTLP_CERTIFICATE", ca)
		if err != nil {
			return err
		}
		dial = (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// dialAgent connects to an agent: resolves its name, or finds its socket. Whether it receives datagrams cannot be seen.
func dialAgent(ctx context.Context, address, _ string) error {
	network := "udp"
	if path, socket := strings.CutPrefix(address, "unix://"); socket {
		network, address = "unixgram", path
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}
