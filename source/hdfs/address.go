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

	"github.com/colinmarc/hdfs/v2/hadoopconf"
)

// defaultPort is the default port of a namenode's RPC.
const defaultPort = "8020"

// locate sets the path and the namenodes, by a URL and a configuration.
func (s *Source) locate(raw string, conf hadoopconf.HadoopConf) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	switch {
	case !strings.EqualFold(u.Scheme, "hdfs") || u.Opaque != "":
		return fmt.Errorf("%q is not of the form hdfs://host:port/path", raw)
	case u.User != nil:
		return fmt.Errorf("%s contains a user: set HADOOP_USER_NAME instead", u.Redacted())
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("%s has a query or fragment: write ? as %%3F and # as %%23", raw)
	}
	host := u.Host
	if host == "" {
		if host, err = defaultHost(conf); err != nil {
			return fmt.Errorf("%s names no host, and %w", raw, err)
		}
	}
	s.root = path.Clean("/" + u.Path)
	if conf["dfs.ha.namenodes."+host] != "" || conf[rpcAddress+host] != "" || slices.Contains(list(conf["dfs.nameservices"]), host) {
		s.name = "hdfs://" + host
		s.namenodes, err = nameservice(conf, host)
		return err
	}
	address, err := hostPort(host)
	s.name, s.namenodes = "hdfs://"+address, []string{address}
	return err
}

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

// hostPort adds the default port to the address of a namenode.
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

// nameservice returns the addresses of a nameservice's namenodes: several with
// high availability, otherwise one.
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

// list splits a comma-separated value.
func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

// addresses returns the addresses of the namenodes in the order in which they are tried.
func (s *Source) addresses() []string {
	first := s.first.Load()
	return slices.Concat(s.namenodes[first:], s.namenodes[:first])
}

// answered notes whether a namenode has answered: it is tried first from then on, or else the next one is.
func (s *Source) answered(address string, ok bool) {
	i := slices.Index(s.namenodes, address)
	switch {
	case i < 0: // none was dialled
	case ok:
		s.first.Store(int32(i))
	default:
		s.first.Store(int32((i + 1) % len(s.namenodes)))
	}
}
