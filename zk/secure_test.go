//go:build integration

package zk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"sequins/test/expect"
	"sequins/test/harness"
)

// With auth, clients with the password share the znodes, and no other client can read or write them.
func testDigest(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	opts := e.options(t)
	opts.Auth = "sequins:secret:word"
	a, b := session(t, opts), session(t, opts)
	nodes := watch(b, NodesDir)
	a.Publish(NodePath("a", "host-a:1"), []byte("x"))
	flush(t, a)
	expect.Eventually(t, "b reads it", func() bool { return len(nodes.Entries()) == 1 && string(nodes.Entries()[0].Data) == "x" })
	b.Publish(NodePath("b", "host-b:1"), nil)
	awaitNames(t, nodes, "a@host-a:1", "b@host-b:1")
	expire(t, e, a) // a new session has to authenticate again, too
	flush(t, a)

	o := observe(t, e.servers)
	if _, _, err := o.Get("/sequins/v1/" + NodePath("a", "host-a:1")); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("read without auth: %v", err)
	}
	if _, _, err := o.Children("/sequins"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("list without auth: %v", err)
	}
	var log expect.Output
	opts.Auth = "sequins:wrong"
	opts.Logger = log.Logger()
	c := session(t, opts)
	theirs := watch(c, NodesDir)
	c.Publish(NodePath("c", "host-c:1"), nil)
	expect.Eventually(t, "the denied requests of c are logged", func() bool { return count(&log, "cannot write znode") == 1 && count(&log, "cannot list directory") > 0 })
	if len(theirs.Entries()) != 0 || c.Status().Published != 0 || !strings.Contains(c.Status().LastError, "not authenticated") {
		t.Errorf("%v, %+v", theirs.Entries(), c.Status())
	}
	if count(&log, "secret") != 0 || count(&log, "wrong") != 0 {
		t.Error("the password is in the log")
	}
}

// The server's certificate is verified, and the client's is requested.
func TestTLS(t *testing.T) {
	t.Parallel() // in its own Java process, since TLS is configured for a whole process
	dir := t.TempDir()
	server, client := certificate(t, dir, "server"), certificate(t, dir, "client")
	e := startEnsemble(t, harness.Start(t), "tls="+server.file+" trust="+client.file)
	trust := &tls.Config{RootCAs: server.pool, Certificates: []tls.Certificate{client.pair}}
	try := func(c *tls.Config) *Session {
		o := e.options(t)
		o.Servers, o.TLS, o.ConnectTimeout = e.secure, c, long
		s := session(t, o)
		s.Publish(NodePath("a", "host-a:1"), []byte("x"))
		return s
	}
	a := try(trust)
	flush(t, a)
	expire(t, e, a)
	flush(t, a)
	observe(t, e.servers).expect(t, a, map[string]string{NodePath("a", "host-a:1"): "x"}) // that port has no TLS

	for name, test := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"unknown server": {&tls.Config{RootCAs: client.pool, Certificates: []tls.Certificate{client.pair}}, "certificate"},
		"another name":   {&tls.Config{RootCAs: server.pool, Certificates: []tls.Certificate{client.pair}, ServerName: "other"}, "match other"},
		"no certificate": {&tls.Config{RootCAs: server.pool}, "certificate"},
	} {
		s := try(test.config)
		expect.Eventually(t, name, func() bool { return strings.Contains(s.Status().LastError, test.want) })
		if s.Status().Sessions != 0 {
			t.Errorf("%s: %+v", name, s.Status())
		}
	}
}

type keyPair struct {
	file string // PEM file with key and certificate
	pair tls.Certificate
	pool *x509.CertPool
}

// certificate returns a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T, dir, name string) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	expect.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	expect.NoError(t, err)
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	k := keyPair{file: filepath.Join(dir, name+".pem"), pool: x509.NewCertPool()}
	expect.NoError(t, os.WriteFile(k.file, append(keyPEM, certPEM...), 0o600))
	if k.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	k.pool.AppendCertsFromPEM(certPEM)
	return k
}
