package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
)

// kerberos keeps what namenodes want to see. Asking a KDC takes no context
// and, if that is silent, many seconds, so it is done by a goroutine that
// callers may leave, one at a time.
type kerberos struct {
	principal string // empty for that of the credential cache
	keytab    string // path; empty for the credential cache
	cache     string // path
	conf      string // path of krb5.conf
	namenode  string // principal of the namenodes, without the realm

	asking chan struct{} // holds one while somebody asks a KDC

	mu    sync.Mutex
	login *login // nil until there is one that works
}

// A login is a client of a KDC and how many use it. The last who leaves one
// that has been replaced destroys it, which ends its goroutine.
type login struct {
	client   *krb.Client
	modified time.Time // of the keytab or cache
	users    int       // kerberos itself counts as one
}

func newKerberos(o Options, namenode string) (*kerberos, error) {
	k := &kerberos{
		principal: o.Principal,
		keytab:    o.Keytab,
		conf:      cmp.Or(o.Krb5Conf, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"),
		asking:    make(chan struct{}, 1),
	}
	k.namenode, _, _ = strings.Cut(namenode, "@")
	switch {
	case k.namenode == "":
		return nil, errors.New("with Kerberos, the principal of the namenodes has to be known: " +
			"dfs.namenode.kerberos.principal in the configuration directory, or an option")
	case o.Keytab != "" && o.CredentialCache != "":
		return nil, errors.New("there are both a keytab and a credential cache")
	case o.Keytab != "" && o.Principal == "":
		return nil, fmt.Errorf("the keytab %s needs the principal that it is for", o.Keytab)
	case o.Keytab != "":
		return k, nil
	case o.Principal != "":
		return nil, fmt.Errorf("the principal %s needs its keytab; a credential cache has its own principal", o.Principal)
	}
	var err error
	k.cache, err = cachePath(cmp.Or(o.CredentialCache, os.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())))
	return k, err
}

// cachePath returns the path of a credential cache that may be given as
// FILE:path.
func cachePath(name string) (string, error) {
	kind, path, typed := strings.Cut(name, ":")
	if !typed || strings.Contains(kind, "/") {
		return name, nil
	}
	if kind != "FILE" {
		return "", fmt.Errorf("the credential cache %s is not a file", name)
	}
	return path, nil
}

// tickets returns a login that has tickets for some of the namenodes, and
// which these are. The login has to be released.
func (k *kerberos) tickets(ctx context.Context, addresses []string) (*login, []string, error) {
	select {
	case k.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting for the KDC: %w", context.Cause(ctx))
	}
	type result struct {
		login  *login
		usable []string
		err    error
	}
	results := make(chan result)
	go func() {
		defer func() { <-k.asking }()
		var r result
		r.login, r.usable, r.err = k.ask(addresses)
		select {
		case results <- r:
		case <-ctx.Done():
			if r.login != nil {
				k.release(r.login)
			}
		}
	}()
	select {
	case r := <-results:
		return r.login, r.usable, r.err
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("the KDC does not answer: %w", context.Cause(ctx))
	}
}

// ask gets the tickets that are not there yet.
func (k *kerberos) ask(addresses []string) (*login, []string, error) {
	l, err := k.current()
	if err != nil {
		// Not wrapped: that there is no keytab says nothing about the source.
		return nil, nil, final{fmt.Errorf("Kerberos, %s: %s", k.who(), err.Error())}
	}
	var usable []string
	var failed error
	for _, address := range addresses {
		err := guard(func() error {
			_, _, err := l.client.GetServiceTicket(k.service(address))
			return err
		})
		if err == nil {
			usable = append(usable, address)
		} else if failed == nil {
			failed = err
		}
	}
	if len(usable) == 0 {
		k.release(l)
		k.drop(l)
		return nil, nil, k.refused(failed)
	}
	return l, usable, nil
}

// service is the principal of the namenode at an address, as the library
// makes it.
func (k *kerberos) service(address string) string {
	name, instance, _ := strings.Cut(k.namenode, "/")
	if host, _, err := net.SplitHostPort(address); err == nil && instance == "_HOST" {
		return name + "/" + host
	}
	return k.namenode
}

// current returns the login, a new one if the keytab or the cache is not the
// one that the last was made of.
func (k *kerberos) current() (*login, error) {
	info, err := os.Stat(cmp.Or(k.keytab, k.cache))
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	l := k.login
	if l != nil && l.modified.Equal(info.ModTime()) {
		l.users++
		k.mu.Unlock()
		return l, nil
	}
	k.mu.Unlock()
	client, err := k.open()
	if err != nil {
		return nil, err
	}
	k.drop(l)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.login = &login{client: client, modified: info.ModTime(), users: 2}
	return k.login, nil
}

// open reads the files. The KDC is not asked before the first ticket.
func (k *kerberos) open() (client *krb.Client, err error) {
	conf, err := config.Load(k.conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.conf, err)
	}
	err = guard(func() error { // of a file that is being written, the parsers may want more than there is
		if k.keytab == "" {
			cache, err := credentials.LoadCCache(k.cache)
			if err != nil {
				return err
			}
			client, err = krb.NewFromCCache(cache, conf)
			return err
		}
		keys, err := keytab.Load(k.keytab)
		if err != nil {
			return err
		}
		name, realm, err := k.client(conf)
		// Active Directory cannot do what PA-FX-FAST would announce.
		client = krb.NewWithKeytab(name, realm, keys, conf, krb.DisablePAFXFAST(true))
		return err
	})
	return client, err
}

// client splits the principal, and puts this host in the place of _HOST.
func (k *kerberos) client(conf *config.Config) (name, realm string, err error) {
	name, realm, _ = strings.Cut(k.principal, "@")
	if service, ok := strings.CutSuffix(name, "/_HOST"); ok {
		host, err := os.Hostname()
		if err != nil {
			return "", "", err
		}
		name = service + "/" + strings.ToLower(host)
	}
	return name, cmp.Or(realm, conf.LibDefaults.DefaultRealm), nil
}

// refused says who was refused what. An error of the network may pass; every
// other is about what somebody has configured.
func (k *kerberos) refused(err error) error {
	if e := (krberror.Krberror{}); errors.As(err, &e) && e.RootCause == krberror.NetworkingError {
		return fmt.Errorf("Kerberos, %s: %w", k.who(), err)
	}
	return final{fmt.Errorf("Kerberos refuses %s: %w: %s", k.who(), fs.ErrPermission, err.Error())}
}

func (k *kerberos) who() string {
	if k.keytab == "" {
		return "the credential cache " + k.cache
	}
	return k.principal + " with the keytab " + k.keytab
}

func (k *kerberos) release(l *login) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		l.client.Destroy()
	}
}

// drop forgets a login, so that the next one is made anew.
func (k *kerberos) drop(l *login) {
	k.mu.Lock()
	current := l != nil && k.login == l
	if current {
		k.login = nil
	}
	k.mu.Unlock()
	if current {
		k.release(l)
	}
}

// close ends what runs in the background, once the KDC has answered what it
// is being asked.
func (k *kerberos) close() {
	k.asking <- struct{}{}
	defer func() { <-k.asking }()
	k.mu.Lock()
	l := k.login
	k.mu.Unlock()
	k.drop(l)
}
