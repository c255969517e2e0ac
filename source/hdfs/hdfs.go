package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path"
	"slices"
	"strings"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"sequins/source"
)

// Defaults of Options. Of a namenode that is silent for half a minute, which
// they are when they collect garbage, a call gives up once and then waits.
const (
	DefaultTimeout  = 20 * time.Second
	DefaultRetryFor = time.Minute
)

// Options say where the data is and who reads it.
type Options struct {
	// URL is hdfs://host:port/path, or hdfs://nameservice/path with the
	// nameservice of the configuration. Without a port, a host's is 8020;
	// hdfs:///path is on fs.defaultFS.
	URL string

	// ConfigDir is the directory of core-site.xml and hdfs-site.xml. Empty
	// stands for $HADOOP_CONF_DIR, or for none where that is not set.
	ConfigDir string

	// User is who reads, where there is no Kerberos. Empty stands for
	// $HADOOP_USER_NAME, or for the user of this process.
	User string

	// Principal (name@REALM, or name/_HOST@REALM for one of each host) and
	// Keytab, the path of its keys, turn on Kerberos. So does CredentialCache,
	// the path of one that somebody else keeps filled, and so does the
	// configuration, with the cache $KRB5CCNAME or /tmp/krb5cc_<uid>.
	Principal, Keytab, CredentialCache string

	// Krb5Conf is the path of the Kerberos configuration. Empty stands for
	// $KRB5_CONFIG or /etc/krb5.conf.
	Krb5Conf string

	// NamenodePrincipal is nn/_HOST@REALM or the like. Empty stands for
	// dfs.namenode.kerberos.principal.
	NamenodePrincipal string

	// Protection is authentication or privacy. Empty stands for
	// dfs.data.transfer.protection; see the package's comment.
	Protection string

	// Timeout is how long to wait for a server that says nothing. 0 is
	// DefaultTimeout.
	Timeout time.Duration

	// RetryFor is how long a call is tried, and how long a reader tries to go
	// on after a failure; that it gets less than 256 KiB in this time is one. 0
	// is DefaultRetryFor.
	RetryFor time.Duration

	// Dial connects to namenodes and datanodes. nil is net.Dialer's, which
	// waits for Timeout at most.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Source is a directory of databases in HDFS. Between calls it holds nothing
// open.
type Source struct {
	name      string            // as in the URL, without the path: hdfs://host:port
	root      string            // the path
	library   lib.ClientOptions // of each session, but for its namenodes
	kerberos  *kerberos         // nil without
	namenodes *namenodes
	timeout   time.Duration
	retryFor  time.Duration

	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Reporter = (*Source)(nil)
)

// New returns the source that o describes. It reads the configuration and
// connects to nobody: whether anything is there is found out by listing it.
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
	place, err := resolve(o.URL, conf)
	if err != nil {
		return nil, err
	}
	s := &Source{
		name: place.name, root: place.root, namenodes: &namenodes{order: place.namenodes},
		library:  lib.ClientOptionsFromConf(conf),
		timeout:  cmp.Or(o.Timeout, DefaultTimeout),
		retryFor: cmp.Or(o.RetryFor, DefaultRetryFor),
	}
	if s.dial = o.Dial; s.dial == nil {
		s.dial = (&net.Dialer{Timeout: s.timeout}).DialContext
	}
	if s.timeout < 0 || s.retryFor < 0 {
		return nil, errors.New("a negative time limit")
	}
	if err := s.protect(o.Protection, conf); err != nil {
		return nil, err
	}
	return s, s.authenticate(o)
}

// readConf reads a configuration directory; "" is none.
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

// protect settles how the exchange with datanodes is protected at least: a
// datanode may ask for more. Of several that the configuration allows, the
// library would take the most, which the datanode need not prefer.
func (s *Source) protect(wanted string, conf hadoopconf.HadoopConf) error {
	const allowed = "dfs.data.transfer.protection"
	p := &s.library.DataTransferProtection
	if *p != "" && conf["dfs.encrypt.data.transfer"] != "true" && slices.Contains(list(conf[allowed]), lib.DataTransferProtectionAuthentication) {
		*p = lib.DataTransferProtectionAuthentication
	}
	*p = cmp.Or(wanted, *p)
	switch *p {
	case "", lib.DataTransferProtectionAuthentication, lib.DataTransferProtectionPrivacy:
		return nil
	}
	return fmt.Errorf("the data transfer protection %q is not supported: %s", *p, protections)
}

// protections is what to tell those who ask for another.
const protections = "authentication works, and privacy with the cipher suite AES/CTR/NoPadding"

// authenticate settles as whom the source reads.
func (s *Source) authenticate(o Options) (err error) {
	if o.Keytab != "" || o.CredentialCache != "" || o.Principal != "" || s.library.KerberosClient != nil {
		s.library.KerberosClient = nil // each session has what kerberos gives it
		s.kerberos, err = newKerberos(o, cmp.Or(o.NamenodePrincipal, s.library.KerberosServicePrincipleName))
		if err == nil {
			s.library.KerberosServicePrincipleName = s.kerberos.namenode
		}
		return err
	}
	s.library.User, err = userName(o.User)
	return err
}

func userName(wanted string) (string, error) {
	if name := cmp.Or(wanted, os.Getenv("HADOOP_USER_NAME")); name != "" {
		return name, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("who reads is not given, and who runs this process is not known: %w", err)
	}
	return u.Username, nil
}

// Close ends what a source does in the background, which is to keep Kerberos
// tickets valid. Readers that are open are not touched.
func (s *Source) Close() error {
	if s.kerberos != nil {
		s.kerberos.close()
	}
	return nil
}

// Path returns a version's directory, as a URL.
func (s *Source) Path(db, version string) string {
	return s.display(path.Join(s.root, db, version))
}

func (s *Source) display(p string) string {
	return s.name + "/" + strings.TrimPrefix(p, "/")
}
