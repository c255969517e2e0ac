// Package authority signs certificates for tests.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sequins/test/expect"
)

// An Authority signs certificates and writes them to files.
type Authority struct {
	// Dir is the directory of the files.
	Dir string

	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// New returns an authority whose own certificate is in NAME.pem.
func New(t *testing.T, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, Dir: t.TempDir()}
	a.Issue(name, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		c.NotAfter = time.Now().AddDate(1, 0, 0)
	})
	return a
}

// File returns the path of a file.
func (a *Authority) File(name string) string { return filepath.Join(a.Dir, name) }

// Pool returns the certificate of the authority as the one to trust.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Issue writes NAME.pem and NAME-key.pem, and returns the serial number. The first one it signs itself.
func (a *Authority) Issue(name string, change func(*x509.Certificate)) int64 {
	a.t.Helper()
	a.next++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(c)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(a.t, err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	expect.NoError(a.t, err)
	if a.cert == nil {
		a.cert, err = x509.ParseCertificate(der)
		expect.NoError(a.t, err)
		a.key = key
	}
	secret, err := x509.MarshalECPrivateKey(key)
	expect.NoError(a.t, err)
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+"-key.pem", "EC PRIVATE KEY", secret)
	return a.next
}

func (a *Authority) write(name, kind string, der []byte) {
	a.t.Helper()
	expect.NoError(a.t, os.WriteFile(a.File(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
