package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// issue returns a certificate for 127.0.0.1 that it signs itself, after a change, and a pool with it.
func issue(t *testing.T, change func(*x509.Certificate)) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
	}
	change(c)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	expect.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	expect.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// quiet is a log for servers whose handshakes fail on purpose.
var quiet = log.New(io.Discard, "", 0)

// Each problem with a certificate says which it is and what to do.
func TestCertificateProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*x509.Certificate)
		trust  bool // in the authority
		ask    func(*tls.Config)
		want   string
	}{
		"unknown authority": {func(*x509.Certificate) {}, false, nil, "has a certificate that cannot be used: x509: certificate signed by unknown authority: name the file with the certificate of its issuer with --ca"},
		"another name": {func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"node1.example", "node2.example"} }, true, nil,
			"has a certificate that cannot be used: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs: use a name that it is for, or issue"},
		"another address": {func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 1, 2, 3)} }, true, nil,
			"has a certificate that cannot be used: x509: certificate is valid for 10.1.2.3, not 127.0.0.1: use a name that it is for, or issue"},
		"expired": {func(c *x509.Certificate) {
			c.NotAfter = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			c.NotBefore = c.NotAfter.Add(-time.Hour)
		}, true, nil,
			"has a certificate that cannot be used: x509: certificate has expired or is not yet valid: current time "},
		"not for servers": {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, true, nil,
			"has a certificate that cannot be used: x509: certificate specifies an incompatible key usage"},
		"wants one of the client": {func(*x509.Certificate) {}, true, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert },
			"refuses the TLS connection (tls: certificate required): if it wants a certificate of its clients, name one that is valid with --certificate"},
		"good": {func(*x509.Certificate) {}, true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pair, pool := issue(t, test.change)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"dbs":{}}`) }))
			s.TLS, s.Config.ErrorLog = &tls.Config{Certificates: []tls.Certificate{pair}}, quiet
			if test.ask != nil {
				test.ask(s.TLS)
			}
			s.StartTLS()
			defer s.Close()
			if !test.trust {
				pool = nil
			}
			c := client.NewNode(client.NodeOptions{URL: s.URL, TLS: &tls.Config{RootCAs: pool}})
			defer c.Close()
			_, err := c.Status(t.Context())
			if test.want == "" {
				expect.NoError(t, err)
				return
			}
			if !errors.Is(err, client.ErrUnreachable) || !strings.HasPrefix(err.Error(), s.URL+" "+test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// A node with TLS that is asked without is recognized, unless it says nothing; so is the reverse.
func TestTheOtherProtocol(t *testing.T) {
	pair, _ := issue(t, func(*x509.Certificate) {})
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	expect.NoError(t, err)
	defer secure.Close()
	go func() { // closes a connection whose handshake fails without a word, as terminators of TLS do
		for {
			conn, err := secure.Accept()
			if err != nil {
				return
			}
			if conn.(*tls.Conn).Handshake() != nil {
				conn.(*tls.Conn).NetConn().Close()
				continue
			}
			conn.Close()
		}
	}()
	alerts, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer alerts.Close()
	go func() { // answers with an alert, as other terminators do
		for {
			conn, err := alerts.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 4096))
			conn.Write([]byte("\x15\x03\x01\x00\x02\x02\x16"))
			conn.Close()
		}
	}()
	withGo := httptest.NewUnstartedServer(http.NotFoundHandler()) // answers 400
	withGo.Config.ErrorLog = quiet
	withGo.StartTLS()
	defer withGo.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for url, want := range map[string]string{
		"http://" + secure.Addr().String():               "closes the connection without an answer: it is not sequins, speaks TLS (https://), or shuts down",
		"http://" + alerts.Addr().String():               "speaks TLS: use https://" + alerts.Addr().String() + ", with --ca FILE if no public authority",
		"http" + strings.TrimPrefix(withGo.URL, "https"): "speaks TLS: use " + withGo.URL + ", with --ca FILE if",
		"https" + strings.TrimPrefix(plain.URL, "http"):  "does not speak TLS: use " + plain.URL,
	} {
		c := client.NewNode(client.NodeOptions{URL: url})
		_, err := c.Status(t.Context())
		c.Close()
		if !errors.Is(err, client.ErrUnreachable) || !strings.HasPrefix(err.Error(), url+" "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
