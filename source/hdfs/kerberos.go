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

// kerberos provides tickets for namenodes. A request to a KDC cannot be cancelled
// and may take many seconds, so it runs in a goroutine of its own, one at a time,
// which callers do not have to wait for.
type kerberos struct {
	principal string // empty with a credential cache
	keytab    string // path; empty with a credential cache
	cache     string // path
	conf      string // path of krb5.conf
	namenode  string // principal of the namenodes, without the realm

	asking chan struct{} // holds one element while a KDC is being asked

	mu    sync.Mutex
	login *login // nil until one works
}

// login is a client of a KDC with a reference count. The last user of a replaced
// login destroys it, which stops its goroutine.
type login struct {
	client   *krb.Client
	modified time.Time // modification time of the keytab or cache
	users    int       // includes kerberos itself
}

func newKerberos(o Options, namenode string) (*kerberos, error) {
	k := &kerberos{
		principal: o.Principal,
		keytab:    o.Keytab,
		conf:      cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"),
		asking:    make(chan struct{}, 1),
	}
	k.namenode, _, _ = strings.Cut(namenode, "@")
	switch {
	case k.namenode == "":
		return nil, errors.New("Kerberos requires the principal of the namenodes: set " +
			"dfs.namenode.kerberos.principal in the configuration directory")
	case o.Keytab != "" && o.Principal == "":
		return nil, fmt.Errorf("the keytab %s requires a principal", o.Keytab)
	case o.Keytab != "":
		return k, nil
	case o.Principal != "":
		return nil, fmt.Errorf("the principal %s requires a keytab; a credential cache has its own principal", o.Principal)
	}
	var err error
	k.cache, err = cachePath(cmp.Or(os.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())))
	return k, err
}

// cachePath returns the path of a credential cache, which may be written as
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

// tickets returns a login with tickets for some of the namenodes, and their
// addresses. The login must be released.
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

// ask requests the missing tickets.
func (k *kerberos) ask(addresses []string) (*login, []string, error) {
	l, err := k.current()
	if err != nil {
		// Not wrapped: a missing keytab must not look like a missing file of the
		// source.
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

// service returns the principal of a namenode, as the library computes it.
func (k *kerberos) service(address string) string {
	name, instance, _ := strings.Cut(k.namenode, "/")
	if host, _, err := net.SplitHostPort(address); err == nil && instance == "_HOST" {
		return name + "/" + host
	}
	return k.namenode
}

// current returns the login, or a new one if the keytab or cache has changed.
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

// open reads the files. It does not contact the KDC.
func (k *kerberos) open() (client *krb.Client, err error) {
	conf, err := config.Load(k.conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.conf, err)
	}
	err = guard(func() error { // the parsers panic on incomplete files
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
		// Active Directory does not support PA-FX-FAST.
		client = krb.NewWithKeytab(name, realm, keys, conf, krb.DisablePAFXFAST(true))
		return err
	})
	return client, err
}

// client splits the principal, and replaces _HOST by this host.
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

// refused describes a failed login. A network error may be temporary; all others
// are caused by the configuration.
func (k *kerberos) refused(err error) error {
	if e, ok := errors.AsType[krberror.Krberror](err); ok && e.RootCause == krberror.NetworkingError {
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

// drop discards a login, so that a new one is made.
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
