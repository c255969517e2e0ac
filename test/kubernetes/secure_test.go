//go:build integration

package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"

	"sequins/test/chart"
	"sequins/test/expect"
)

// authority signs certificates, as an issuer of cert-manager does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
	serial      int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "internal CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.certificate, a.key, a.pem = a.sign(t, template, nil)
	return a
}

// sign makes a key and a certificate for it; the parent nil means itself.
func (a *authority) sign(t testing.TB, template, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	expect.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	expect.NoError(t, err)
	return certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// issue returns the content of a Secret of type kubernetes.io/tls for names or addresses.
func (a *authority) issue(t testing.TB, usages []x509.ExtKeyUsage, names ...string) content {
	t.Helper()
	a.serial++
	template := &x509.Certificate{SerialNumber: big.NewInt(1 + a.serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: usages}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	_, key, certificate := a.sign(t, template, a.certificate)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	expect.NoError(t, err)
	return content{"tls.crt": certificate, "tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "ca.crt": a.pem}
}

// fulfil issues what a Certificate of the chart asks for, as cert-manager does.
func (a *authority) fulfil(t testing.TB, o chart.Object) (secret string, c content) {
	t.Helper()
	var spec struct {
		SecretName string
		DNSNames   []string
		Usages     []string
	}
	expect.NoError(t, json.Unmarshal(o.Spec, &spec))
	var usages []x509.ExtKeyUsage
	for usage, x := range map[string]x509.ExtKeyUsage{"server auth": x509.ExtKeyUsageServerAuth, "client auth": x509.ExtKeyUsageClientAuth} {
		if slices.Contains(spec.Usages, usage) {
			usages = append(usages, x)
		}
	}
	return spec.SecretName, a.issue(t, usages, spec.DNSNames...)
}

// client returns the settings of a client that checks the certificate of a server by a name.
func (a *authority) client(name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{RootCAs: pool, ServerName: name}
}
