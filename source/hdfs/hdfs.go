package hdfs

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"sequins/source"
)

// Defaults of Options. A namenode may be silent for half a minute during garbage
// collection: a call times out once and then retries.
const (
	defaultTimeout  = 20 * time.Second
	defaultRetryFor = time.Minute
)

// Options configures a Source.
type Options struct {
	// URL is hdfs://host:port/path, or hdfs://nameservice/path with a nameservice
	// of the configuration. The default port is 8020; hdfs:///path is on
	// fs.defaultFS.
	URL string

	// ConfigDir is the directory of core-site.xml and hdfs-site.xml. If empty, it
	// is $HADOOP_CONF_DIR; if that is not set, there is no configuration.
	ConfigDir string

	// Principal (name@REALM, or name/_HOST@REALM for one per host) and Keytab,
	// the path of its keys, enable Kerberos. So does the configuration, with the
	// cache $KRB5CCNAME or /tmp/krb5cc_<uid>, which is kept valid externally.
	Principal, Keytab string

	// Timeout bounds the wait for a silent server. 0 means 20 seconds.
	Timeout time.Duration

	// RetryFor bounds the retries of a call, and of a reader, after the first failure.
	// 0 means a minute.
	RetryFor time.Duration

	// Dial connects to namenodes and datanodes. nil means a net.Dialer with
	// Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source is a directory of databases in HDFS. It keeps nothing open between
// calls.
type Source struct {
	name      string            // as in the URL, without the path: hdfs://host:port
	root      string            // path
	library   lib.ClientOptions // for each session, without namenodes
	kerberos  *kerberos         // nil without Kerberos
	namenodes []string          // addresses
	first     atomic.Int32      // index of the namenode that is tried first; the others follow in a circle
	timeout   time.Duration
	retryFor  time.Duration

	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

var _ source.Source = (*Source)(nil)

// New returns the source described by o. It reads the configuration but does not
// connect.
func New(o Options) (*Source, error) {
	s, err := newSource(o)
	if err != nil {
		return nil, fmt.Errorf("hdfs: %w", err)
	}
	return s, nil
}

func newSource(o Options) (*Source, error) {
	conf, err := readConf(cmp.Or(o.ConfigDir, os.Getenv("HADOOP_CONF_DIR")))
	if err != nil {
		return nil, err
	}
	s := &Source{
		library:  lib.ClientOptionsFromConf(conf),
		timeout:  cmp.Or(o.Timeout, defaultTimeout),
		retryFor: cmp.Or(o.RetryFor, defaultRetryFor),
	}
	if s.dial = o.Dial; s.dial == nil {
		s.dial = (&net.Dialer{Timeout: s.timeout}).DialContext
	}
	return s, cmp.Or(s.locate(o.URL, conf), s.protect(conf), s.authenticate(o))
}

// readConf reads a configuration directory; dir may be "".
func readConf(dir string) (hadoopconf.HadoopConf, error) {
	if dir == "" {
		return hadoopconf.HadoopConf{}, nil
	}
	conf, err := hadoopconf.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("the configuration in %s: %w", dir, err)
	}
	if conf == nil {
		return nil, fmt.Errorf("the configuration directory %s has no core-site.xml and no hdfs-site.xml", dir)
	}
	for key, value := range conf {
		conf[key] = strings.TrimSpace(value)
	}
	return conf, nil
}

// protect sets the minimum protection of data transfers: a datanode may require
// more. If the configuration allows several, the library would use the strongest,
// which the datanode need not prefer.
func (s *Source) protect(conf hadoopconf.HadoopConf) error {
	const allowed = "dfs.data.transfer.protection"
	p := &s.library.DataTransferProtection
	if *p != "" && conf["dfs.encrypt.data.transfer"] != "true" && slices.Contains(list(conf[allowed]), lib.DataTransferProtectionAuthentication) {
		*p = lib.DataTransferProtectionAuthentication
	}
	switch *p {
	case "", lib.DataTransferProtectionAuthentication, lib.DataTransferProtectionPrivacy:
		return nil
	}
	return fmt.Errorf("the data transfer protection %q is not supported: %s", *p, protections)
}

// protections lists the supported values, for errors.
const protections = "authentication works, and privacy with the cipher suite AES/CTR/NoPadding"

// authenticate sets the user, which is $HADOOP_USER_NAME or that of this process, or Kerberos.
func (s *Source) authenticate(o Options) (err error) {
	if o.Keytab != "" || o.Principal != "" || s.library.KerberosClient != nil {
		s.library.KerberosClient = nil // set per session by kerberos
		s.kerberos, err = newKerberos(o, s.library.KerberosServicePrincipleName)
		if err == nil {
			s.library.KerberosServicePrincipleName = s.kerberos.namenode
		}
		return err
	}
	if s.library.User = os.Getenv("HADOOP_USER_NAME"); s.library.User != "" {
		return nil
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("HADOOP_USER_NAME is not set, and the user of this process is unknown: %w", err)
	}
	s.library.User = u.Username
	return nil
}

// Path returns a version's directory as a URL.
func (s *Source) Path(db, version string) string {
	return s.display(path.Join(s.root, db, version))
}

func (s *Source) display(p string) string {
	return s.name + "/" + strings.TrimPrefix(p, "/")
}
