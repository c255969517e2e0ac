package hdfs

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/colinmarc/hdfs/v2/hadoopconf"
)

// defaultPort is that of a namenode's RPC, where no other is given.
const defaultPort = "8020"

// A place is what a URL means under a configuration.
type place struct {
	name      string   // hdfs://host:port or hdfs://nameservice
	root      string   // an absolute path
	namenodes []string // host:port of each
}

// resolve finds out what a URL means.
func resolve(raw string, conf hadoopconf.HadoopConf) (place, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return place{}, err
	}
	switch {
	case !strings.EqualFold(u.Scheme, "hdfs") || u.Opaque != "":
		return place{}, fmt.Errorf("%q is not of the form hdfs://host:port/path", raw)
	case u.User != nil:
		return place{}, fmt.Errorf("%s names a user: who reads is an option of its own", u.Redacted())
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return place{}, fmt.Errorf("%s has more than a path: ? is written as %%3F, and # as %%23", raw)
	}
	host := u.Host
	if host == "" {
		if host, err = defaultHost(conf); err != nil {
			return place{}, fmt.Errorf("%s names no host, and %w", raw, err)
		}
	}
	p := place{root: path.Clean("/" + u.Path)}
	if isNameservice(conf, host) {
		p.name = "hdfs://" + host
		p.namenodes, err = nameservice(conf, host)
		return p, err
	}
	address, err := hostPort(host)
	p.name, p.namenodes = "hdfs://"+address, []string{address}
	return p, err
}

// defaultHost is what fs.defaultFS names.
func defaultHost(conf hadoopconf.HadoopConf) (string, error) {
	fs := cmp.Or(conf["fs.defaultFS"], conf["fs.default.name"])
	if fs == "" {
		return "", errors.New("there is no configuration with fs.defaultFS")
	}
	u, err := url.Parse(fs)
	if err != nil || u.Scheme != "hdfs" || u.Host == "" {
		return "", fmt.Errorf("fs.defaultFS is %q", fs)
	}
	return u.Host, nil
}

// hostPort completes the address of a namenode.
func hostPort(host string) (string, error) {
	if !strings.Contains(host, ":") || strings.HasSuffix(host, "]") {
		host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
	}
	name, port, err := net.SplitHostPort(host)
	if err == nil && (name == "" || port == "") {
		err = fmt.Errorf("%q is not the address of a namenode", host)
	}
	return host, err
}

const rpcAddress = "dfs.namenode.rpc-address."

func isNameservice(conf hadoopconf.HadoopConf, name string) bool {
	return conf["dfs.ha.namenodes."+name] != "" || conf[rpcAddress+name] != "" || slices.Contains(list(conf["dfs.nameservices"]), name)
}

// nameservice returns the addresses of a nameservice's namenodes: of several
// where it is highly available, or of its only one.
func nameservice(conf hadoopconf.HadoopConf, name string) ([]string, error) {
	keys := []string{rpcAddress + name}
	if ids := list(conf["dfs.ha.namenodes."+name]); len(ids) > 0 {
		keys = nil
		for _, id := range ids {
			keys = append(keys, rpcAddress+name+"."+id)
		}
	}
	var addresses []string
	for _, key := range keys {
		value := strings.TrimSpace(conf[key])
		if value == "" {
			return nil, fmt.Errorf("the configuration of the nameservice %s lacks %s", name, key)
		}
		if strings.Contains(value, "${") {
			return nil, fmt.Errorf("%s is %q: variables are not supported", key, value)
		}
		address, err := hostPort(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// list splits a value of several.
func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

// namenodes are those of a source, in the order in which they are asked.
type namenodes struct {
	mu    sync.Mutex
	order []string
}

func (n *namenodes) addresses() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.order)
}

// prefer puts one first, that has just answered.
func (n *namenodes) prefer(address string) { n.move(address, true) }

// avoid puts one last, that has just failed.
func (n *namenodes) avoid(address string) { n.move(address, false) }

func (n *namenodes) move(address string, first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.order, address)
	if i < 0 {
		return
	}
	rest := slices.Delete(slices.Clone(n.order), i, i+1)
	if first {
		n.order = append([]string{address}, rest...)
	} else {
		n.order = append(rest, address)
	}
}
