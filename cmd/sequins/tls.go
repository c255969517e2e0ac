package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"sequins/config"
)

// A keyring holds the certificates of [tls], which follow their files.
type keyring struct {
	followed
	files config.TLS

	host   string    // by which other nodes reach this one; "" without other nodes. It is set before the files are followed.
	newest time.Time // modification time of the newest file in use
	keys   atomic.Pointer[loadedKeys]
}

type loadedKeys struct {
	own    *tls.Certificate
	nodes  *x509.CertPool // nil means the system's
	server *tls.Config    // shared by all handshakes, so that sessions can be resumed
}

// openKeyring reads the files for a node, and returns an error if its certificate is not for servers. It logs one that has expired: if it
// refused it, a restart would be an outage. It returns nil if none are configured.
func openKeyring(files config.TLS, log *slog.Logger) (*keyring, error) {
	k, err := readKeyring(files, log)
	if k == nil || err != nil {
		return nil, err
	}
	if err := k.now().checkUsage(); err != nil {
		return nil, err
	}
	if err := k.now().checkTime(time.Now()); err != nil {
		log.Warn("the certificate of this node is not valid now: clients refuse it", "error", err)
	}
	return k, nil
}

// readKeyring reads the files, for a node or for what talks to it as itself. It returns nil if none are configured.
func readKeyring(files config.TLS, log *slog.Logger) (*keyring, error) {
	if files.Certificate == "" {
		return nil, nil
	}
	k := &keyring{files: files}
	k.followed = followed{what: "the certificates", log: log, changed: func() bool { return !k.modified().Equal(k.newest) }, read: k.readAgain}
	k.newest = k.modified()
	loaded, err := k.load()
	k.keys.Store(&loaded)
	return k, err
}

// now returns the keys in use.
func (k *keyring) now() *loadedKeys { return k.keys.Load() }

func (k *keyring) load() (loaded loadedKeys, err error) {
	pair, err := tls.LoadX509KeyPair(k.files.Certificate, k.files.Key)
	if err != nil {
		return loaded, fmt.Errorf("tls.certificate: %w", err)
	}
	loaded.own = &pair
	if loaded.nodes, err = readPool("tls.ca", k.files.CA); err != nil {
		return loaded, err
	}
	clients, err := readPool("tls.client_ca", k.files.ClientCA)
	if err != nil {
		return loaded, err
	}
	loaded.server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if clients != nil {
		loaded.server.ClientCAs, loaded.server.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	if k.host != "" {
		return loaded, loaded.check(k.host)
	}
	return loaded, nil
}

// checkAs makes the keyring check its certificate, now and after each change, against the requirements
// of other nodes that reach this one by a host name.
func (k *keyring) checkAs(host string) error {
	k.host = host
	return k.now().check(host)
}

// check returns an error if other nodes with the same [tls] would refuse this node's certificate: as
// the server of a host, and if there is a client_ca, as a client.
func (l *loadedKeys) check(host string) error {
	if err := l.verify(x509.VerifyOptions{Roots: l.nodes, DNSName: host, KeyUsages: serverUsage}); err != nil {
		return fmt.Errorf("tls.certificate: other nodes will refuse it, as they reach this one by %s and check it against tls.ca: %w", host, err)
	}
	if l.server.ClientCAs == nil {
		return nil
	}
	if err := l.verify(x509.VerifyOptions{Roots: l.server.ClientCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return fmt.Errorf("tls.certificate: other nodes will refuse it when this one asks them, as they check it against tls.client_ca for client authentication: %w", err)
	}
	return nil
}

// serverUsage is the usage of certificates of servers.
var serverUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// verify verifies this node's certificate, with those of issuers that are beside it.
func (l *loadedKeys) verify(o x509.VerifyOptions) error {
	o.Intermediates = x509.NewCertPool()
	for _, der := range l.own.Certificate[1:] {
		issuer, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		o.Intermediates.AddCert(issuer)
	}
	_, err := l.own.Leaf.Verify(o)
	return err
}

// checkUsage returns an error if clients would refuse this node's certificate because it is not for servers.
func (l *loadedKeys) checkUsage() error {
	leaf := l.own.Leaf
	if len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 {
		return nil // for everything
	}
	if slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return nil
	}
	return errors.New("tls.certificate: clients would refuse it: its extendedKeyUsage lacks serverAuth")
}

// checkTime returns an error if this node's certificate has expired or is not valid yet.
func (l *loadedKeys) checkTime(now time.Time) error {
	switch leaf := l.own.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("tls.certificate: it has expired at %s: clients will refuse it", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("tls.certificate: it is valid from %s on: clients will refuse it before", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// readPool reads the certificates of issuers; nil if there is no file.
func readPool(key, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: there is no PEM certificate in %s", key, file)
	}
	return pool, nil
}

// clientTLS returns the settings for a server that is not a node of this cluster: its certificate is
// checked against files.CA, if set, and files.Certificate is the client certificate. caName and
// certificateName are their names in errors.
func clientTLS(files config.TLS, caName, certificateName string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = readPool(caName, files.CA); err != nil {
		return nil, err
	}
	if files.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", certificateName, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// modified returns the modification time of the newest file.
func (k *keyring) modified() (newest time.Time) {
	for _, file := range []string{k.files.Certificate, k.files.Key, k.files.CA, k.files.ClientCA} {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}

// readAgain reads the files, and uses them unless clients would refuse a new certificate. The one in use is not checked again: if it has
// expired meanwhile, a new client_ca must be taken all the same.
func (k *keyring) readAgain() error {
	newest := k.modified()
	loaded, err := k.load()
	if err == nil && !loaded.own.Leaf.Equal(k.now().own.Leaf) {
		err = cmp.Or(loaded.checkUsage(), loaded.checkTime(time.Now()))
	}
	if err != nil {
		return err
	}
	k.log.Info("the certificates have changed, and are used from now on", "certificate", k.files.Certificate)
	k.newest = newest
	k.keys.Store(&loaded)
	return nil
}

// server returns the TLS settings for clients, of which pick chooses the ones in use.
func (k *keyring) server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.now().server, nil },
	}
}

// client returns the TLS settings for connections to other nodes. Its root certificates do not change
// later.
func (k *keyring) client() *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS12,
		RootCAs:              k.now().nodes,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.now().own, nil },
	}
}

// self returns the TLS settings for connections of this process to itself, or to the node of this
// machine's configuration. They do not verify the certificate.
func (k *keyring) self() *tls.Config {
	c := k.client()
	c.InsecureSkipVerify = true
	return c
}
