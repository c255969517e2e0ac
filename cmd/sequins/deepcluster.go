package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sequins/internal/human"
	"sequins/zk"
)

func (d *deep) clusterChecks() []deepCheck {
	return []deepCheck{{"zk", d.checkZooKeeper}, {"sharding.advertised_hostname", d.checkAdvertised}, {"other nodes", d.checkNodes}}
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
	type answer struct {
		report zk.ProbeReport
		err    error
	}
	answers := make([]answer, len(o.Servers))
	var all sync.WaitGroup
	for i, server := range o.Servers {
		all.Go(func() {
			one := o
			one.Servers = []string{server}
			answers[i].report, answers[i].err = zk.Probe(ctx, one)
		})
	}
	all.Wait()
	used := false
	for i, a := range answers {
		if a.err != nil {
			e.unreachable = append(e.unreachable, fmt.Errorf("%s: %w", o.Servers[i], a.err))
			continue
		}
		e.take(a.report, d.self())
		used = true
	}
	if !used {
		return e, errors.Join(e.unreachable...)
	}
	return e, nil
}

func (e *ensemble) take(r zk.ProbeReport, self string) {
	e.existed, e.others = r.Existed, nil
	for _, name := range r.Nodes {
		if _, addr, err := zk.ParseNode(name); err == nil && addr != self {
			e.others = append(e.others, addr)
		}
	}
	e.withThisNode = len(e.others) + 1
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
	if err != nil {
		text := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
		if strings.Contains(text, "not authenticated") {
			return failed("%s; the user of zk.auth may not use %s: correct zk.auth, or the ACL of the znodes", text, root)
		}
		return failed("%s%s", text, advice(err))
	}
	as := "without credentials"
	if d.c.ZK.Auth != "" || d.c.ZK.AuthFile != "" {
		as = "as the user of zk.auth"
	}
	if len(e.unreachable) > 0 {
		return warned("%d of %s cannot be used: %v", len(e.unreachable), human.Plural(len(d.c.ZK.Servers), "server"), e.unreachable[0])
	}
	if e.existed {
		return found("%s may create below %s, %s; other nodes there: %d", "this node", root, as, len(e.others))
	}
	return found("this node may create %s, %s; there is no such cluster yet", root, as)
}

// checkAdvertised resolves the advertised name, as other nodes do on their machines.
func (d *deep) checkAdvertised(ctx context.Context) finding {
	host, err := advertisedHost(d.c.Sharding.AdvertisedHostname)
	if err != nil {
		return failedBy(err)
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return failedBy(fmt.Errorf("%s: %w", host, err))
	}
	list := strings.Join(addrs, ", ")
	if !slices.ContainsFunc(addrs, func(a string) bool { return !isLoopbackAddr(a) }) {
		return warned("%s is %s, the loopback interface: on other machines that is themselves, or their DNS has another address (see /etc/hosts)", host, list)
	}
	if !slices.ContainsFunc(addrs, isOwnAddress) {
		return warned("%s is %s, which is no address of this machine: it must be forwarded to it", host, list)
	}
	return found("%s is %s", host, list)
}

func isLoopbackAddr(addr string) bool {
	ip := net.ParseIP(addr)
	return ip != nil && ip.IsLoopback()
}

// isOwnAddress reports whether an address is one of this machine.
func isOwnAddress(addr string) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		ipNet, ok := a.(*net.IPNet)
		return ok && ipNet.IP.Equal(net.ParseIP(addr))
	})
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
	client, err := d.peerClient()
	if err != nil {
		return failedBy(err)
	}
	defer client.CloseIdleConnections()
	asked := e.others[:min(len(e.others), maxNodesAsked)]
	errs := make([]error, len(asked))
	var all sync.WaitGroup
	for i, addr := range asked {
		all.Go(func() { errs[i] = askNode(ctx, client, addr, d.c.TLS.Certificate != "") })
	}
	all.Wait()
	wrong := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(wrong) > 0 {
		return warned("%d of %s: %v%s", len(wrong), human.Plural(len(asked), "node"), wrong[0], advice(wrong[0]))
	}
	if r := d.c.Sharding.Replication; r > e.withThisNode {
		return warned("%s with this one cannot hold sharding.replication, %d, replicas of a partition", human.Plural(e.withThisNode, "node"), r)
	}
	return found("all %d answer", len(asked))
}

func (d *deep) peerClient() (*http.Client, error) {
	keys, err := readKeyring(d.c.TLS, discard())
	if err != nil {
		return nil, err
	}
	var secure *tls.Config
	if keys != nil {
		secure = keys.client()
	}
	return &http.Client{Timeout: checkTime / 3, Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}, nil
}

func askNode(ctx context.Context, client *http.Client, addr string, secure bool) error {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+addr+"/livez", nil)
	if err != nil {
		return err
	}
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", addr, err)
	}
	_ = resp.Body.Close() // it was not read
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if took := time.Since(begin); err == nil && time.Since(theirs).Abs() > maxSkew+took {
		return fmt.Errorf("the clock of %s differs from that of this machine by %s: synchronize both", addr, time.Since(theirs).Round(time.Second))
	}
	return nil
}
