package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"sequins/config"
)

// A keyring holds the certificates of [tls], which follow their files.
type keyring struct {
	followed
	config config.TLS
	host   string // by which other nodes reach this one; "" without other nodes
	keys   atomic.Pointer[loadedKeys]
}

type loadedKeys struct {
	own    *tls.Certificate
	nodes  *x509.CertPool // nil means the system's
	server *tls.Config    // shared by all handshakes, so that sessions can be resumed
}

// openKeyring reads the files for a node that other nodes reach by host, "" if there are none. It returns nil if no files are configured. With an
// error for which isExpired is true, the keyring can be used: a single node starts with it, as a restart would be an outage.
func openKeyring(c config.TLS, host string, log *slog.Logger) (*keyring, error) {
	if c.Certificate == "" {
		return nil, nil
	}
	k := &keyring{config: c, host: host}
	k.followed = followed{what: "the certificates", log: log, files: []string{c.Certificate, c.Key, c.CA, c.ClientCA}, read: k.readAgain}
	k.inUse = k.stat()
	loaded, err := k.load()
	if err != nil {
		return nil, err
	}
	k.keys.Store(&loaded)
	return k, loaded.check(host)
}

// now returns the keys in use.
func (k *keyring) now() *loadedKeys { return k.keys.Load() }

func (k *keyring) load() (loaded loadedKeys, err error) {
	pair, err := tls.LoadX509KeyPair(k.config.Certificate, k.config.Key)
	if err != nil {
		return loaded, fmt.Errorf("tls.certificate: %w", err)
	}
	loaded.own = &pair
	if loaded.nodes, err = readPool("tls.ca", k.config.CA); err != nil {
		return loaded, err
	}
	clients, err := readPool("tls.client_ca", k.config.ClientCA)
	if err != nil {
		return loaded, err
	}
	loaded.server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if clients != nil {
		loaded.server.ClientCAs, loaded.server.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	return loaded, nil
}

// check returns an error if clients would refuse this node's certificate because of its time or usage; or, if there is a host, if other
// nodes with the same [tls] would: as the server of the host, and if there is a client_ca, as a client.
func (l *loadedKeys) check(host string) error {
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if host == "" {
		itself := x509.NewCertPool() // who trusts the certificate is for clients to say
		itself.AddCert(l.own.Leaf)
		if err := l.verify(x509.VerifyOptions{Roots: itself, KeyUsages: server}); err != nil {
			return fmt.Errorf("tls.certificate: clients will refuse it: %w", err)
		}
		return nil
	}
	if err := l.verify(x509.VerifyOptions{Roots: l.nodes, DNSName: host, KeyUsages: server}); err != nil {
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

// isExpired reports whether a certificate is refused only because it has expired or is not valid yet.
func isExpired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
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

// ClientTLS returns the settings for a server that is not a node of this cluster: its certificate is
// checked against files.CA, if set, and files.Certificate is the client certificate. caName and
// certificateName are their names in errors.
func ClientTLS(files config.TLS, caName, certificateName string) (*tls.Config, error) {
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

// readAgain reads the files, and uses them unless clients would refuse a new certificate. The one in use is not checked again: if it has
// expired meanwhile, a new client_ca must be taken all the same.
func (k *keyring) readAgain() error {
	loaded, err := k.load()
	if err == nil && (k.host != "" || !loaded.own.Leaf.Equal(k.now().own.Leaf)) {
		err = loaded.check(k.host)
	}
	if err != nil {
		return err
	}
	k.log.Info("the certificates have changed, and are used from now on", "certificate", k.config.Certificate)
	k.keys.Store(&loaded)
	return nil
}

// server returns the TLS settings for clients. They follow the files.
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
