package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/config"
	"sequins/test/expect"
)

// An authority signs certificates and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.issue(name, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		c.NotAfter = time.Now().AddDate(1, 0, 0)
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes NAME.pem and NAME-key.pem, and returns the serial number. The first one it signs itself.
func (a *authority) issue(name string, change func(*x509.Certificate)) int64 {
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

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	expect.NoError(a.t, os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// client returns one that trusts the authority, with the certificate of a name if that is not "".
func (a *authority) client(name string) *http.Client {
	a.t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	c := &tls.Config{RootCAs: pool}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+"-key.pem"))
		expect.NoError(a.t, err)
		c.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// serveTLS starts a node with [tls], and returns its https URL.
func serveTLS(t *testing.T, a *authority, clientCA string) (s *served, base string) {
	t.Helper()
	dir := t.TempDir()
	conf := fmt.Sprintf("source = %q\nlocal_store = %q\n[tls]\ncertificate = %q\nkey = %q\nca = %q\nclient_ca = %q\n",
		demoSource(t, dir), filepath.Join(dir, "store"), a.file("node.pem"), a.file("node-key.pem"), a.file("ca.pem"), clientCA)
	writeFile(t, filepath.Join(dir, "sequins.conf"), conf)
	s = startServer(t, dir)
	return s, secureURL(s.base)
}

// eventuallyOK waits until the demo's key is answered.
func eventuallyOK(t *testing.T, c *http.Client, base string) *http.Response {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		resp, err := c.Get(base + demoPath)
		expect.NoError(t, err)
		expect.NoError(t, resp.Body.Close())
		if resp.StatusCode == http.StatusOK {
			return resp
		}
		if time.Now().After(end) {
			t.Fatalf("the last answer was %s", resp.Status)
		}
	}
}

// A node with [tls] answers clients that use TLS, and reloads its certificates while it runs.
func TestTLS(t *testing.T) {
	a := newAuthority(t, "ca")
	a.issue("node", nil)
	s, base := serveTLS(t, a, "")
	c := a.client("")
	eventuallyOK(t, c, base)
	if resp, err := http.Get(s.base + "/livez"); err == nil && resp.StatusCode == http.StatusOK {
		t.Error("it answers without TLS")
	}
	sequins(t, "status", "--ca", a.file("ca.pem"), base).wants(t, exitOK)
	sequins(t, "status", base).wants(t, exitUnreachable, "sequins: "+base+" has a certificate that cannot be used: x509: certificate signed by unknown authority: name the file with the certificate of its issuer with --ca")
	sequins(t, "status", strings.TrimPrefix(base, "https://")).wants(t, exitUnreachable, "sequins: http"+strings.TrimPrefix(base, "https")+" speaks TLS: use "+base+", with --ca FILE if ")

	serial := a.issue("node", nil)
	changed := time.Now().Add(time.Minute) // so that it differs whatever the file system's clock
	expect.NoError(t, os.Chtimes(a.file("node.pem"), changed, changed))
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		if resp := eventuallyOK(t, c, base); resp.TLS.PeerCertificates[0].SerialNumber.Int64() == serial {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the new certificate is not used")
		}
	}
	writeFile(t, a.file("node.pem"), "nonsense")
	s.t.Log("a certificate that is not good")
	for end := time.Now().Add(2 * followPeriod); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		eventuallyOK(t, c, base)
	}
	s.waitFor(`files have changed and are not good; the old ones stay" files="the certificates"`)
	if r := sequins(t, "status", "--ca", a.file("ca.pem"), base); r.code != exitUnhealthy || !strings.Contains(r.stdout, "The new certificates are not in use: tls.certificate: ") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}

	a.issue("node", nil)
	later := changed.Add(time.Minute)
	expect.NoError(t, os.Chtimes(a.file("node.pem"), later, later))
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		r := sequins(t, "status", "--ca", a.file("ca.pem"), base)
		if r.code == exitOK && strings.Contains(r.stdout, "The certificate of this node expires in ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
		}
	}
}

// With client_ca only those get in who show a certificate of it.
func TestMutualTLS(t *testing.T) {
	a := newAuthority(t, "ca")
	a.issue("node", nil)
	a.issue("client", nil)
	s, base := serveTLS(t, a, a.file("ca.pem"))
	eventuallyOK(t, a.client("client"), base)
	if _, err := a.client("").Get(base + "/livez"); err == nil {
		t.Error("it answers somebody without a certificate")
	}
	stranger := newAuthority(t, "ca")
	stranger.issue("client", nil)
	stranger.cert = a.cert
	if _, err := stranger.client("client").Get(base + "/livez"); err == nil {
		t.Error("it answers somebody with a certificate of somebody else")
	}
	sequins(t, "status", "--ca", a.file("ca.pem"), "--certificate", a.file("client.pem"), "--certificate-key", a.file("client-key.pem"), base).
		wants(t, exitOK)
	shown := []string{"--ca", a.file("ca.pem"), "--certificate", a.file("client.pem"), "--certificate-key", a.file("client-key.pem")}
	db, key, _ := strings.Cut(strings.TrimPrefix(demoPath, "/"), "/")
	for _, args := range [][]string{{"get", base, db, key}, {"mget", base, db, key}, {"scan", base, db, "--prefix", key}} {
		if r := sequins(t, append(args, shown...)...); r.code != exitOK || !strings.Contains(r.stdout, "{") {
			t.Errorf("%v: %+v", args, r)
		}
		sequins(t, append(args, "--ca", a.file("ca.pem"))...).wants(t, exitUnreachable, "sequins: "+base+" refuses the TLS connection (tls: certificate required): if it wants a certificate of its clients, name yours with --certificate")
	}
	cmd := command(t, "status") // by the configuration of this machine
	cmd.Dir = t.TempDir()
	port := base[len("https://"):]
	writeFile(t, filepath.Join(cmd.Dir, "sequins.conf"), fmt.Sprintf("source = \"/x\"\nbind = %q\n[tls]\ncertificate = %q\nkey = %q\n",
		port, a.file("node.pem"), a.file("node-key.pem")))
	finish(t, cmd).wants(t, exitOK)
	_ = s
}

// Other nodes' certificates are checked against tls.ca, and for the name that they are asked by.
func TestTLSBetweenNodes(t *testing.T) {
	a, stranger := newAuthority(t, "ca"), newAuthority(t, "ca")
	a.issue("node", nil)
	stranger.issue("node", nil)
	a.issue("other", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere"} })
	for name, tt := range map[string]struct {
		by   *authority
		cert string
		ok   bool
	}{
		"one of us":         {a, "node", true},
		"a stranger":        {stranger, "node", false},
		"by another's name": {a, "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, err := openKeyring(config.TLS{Certificate: tt.by.file(tt.cert + ".pem"), Key: tt.by.file(tt.cert + "-key.pem"),
				ClientCA: a.file("ca.pem")}, "", slog.New(slog.DiscardHandler))
			expect.NoError(t, err)
			ours, err := openKeyring(config.TLS{Certificate: a.file("node.pem"), Key: a.file("node-key.pem"), CA: a.file("ca.pem")},
				"", slog.New(slog.DiscardHandler))
			expect.NoError(t, err)
			ln, err := tls.Listen("tcp", "127.0.0.1:0", theirs.server())
			expect.NoError(t, err)
			defer ln.Close()
			go func() {
				if c, err := ln.Accept(); err == nil {
					c.(*tls.Conn).Handshake() //nolint:errcheck // the other side tells
					c.Close()
				}
			}()
			c, err := tls.Dial("tcp", ln.Addr().String(), withName(ours.client(), "127.0.0.1"))
			if (err == nil) != tt.ok {
				t.Errorf("connecting: %v", err)
			}
			if err == nil {
				c.Close()
			}
		})
	}
}

func withName(c *tls.Config, name string) *tls.Config {
	c.ServerName = name
	return c
}

func TestTLSFilesThatAreNotGood(t *testing.T) {
	a := newAuthority(t, "ca")
	a.issue("node", nil)
	writeFile(t, a.file("empty.pem"), "")
	good := config.TLS{Certificate: a.file("node.pem"), Key: a.file("node-key.pem")}
	for name, change := range map[string]func(*config.TLS){
		"tls.certificate": func(c *config.TLS) { c.Certificate = a.file("none.pem") },
		"tls.ca":          func(c *config.TLS) { c.CA = a.file("empty.pem") },
		"tls.client_ca":   func(c *config.TLS) { c.ClientCA = a.file("none.pem") },
	} {
		files := good
		change(&files)
		if _, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); err == nil || len(err.Error()) < len(name) || err.Error()[:len(name)] != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if k, err := openKeyring(config.TLS{}, "", nil); k != nil || err != nil {
		t.Errorf("without files: %v, %v", k, err)
	}
}

// Errors of the files of a client use the names of their flags or keys.
func TestClientTLSNamesItsFiles(t *testing.T) {
	a := newAuthority(t, "ca")
	a.issue("client", nil)
	writeFile(t, a.file("text.pem"), "nonsense")
	good := config.TLS{CA: a.file("ca.pem"), Certificate: a.file("client.pem"), Key: a.file("client-key.pem")}
	for name, tt := range map[string]struct {
		change func(*config.TLS)
		want   string
	}{
		"nothing wrong":    {func(*config.TLS) {}, ""},
		"no CA":            {func(f *config.TLS) { f.CA = a.file("none.pem") }, "zk.tls_ca: open " + a.file("none.pem")},
		"CA of no sense":   {func(f *config.TLS) { f.CA = a.file("text.pem") }, "zk.tls_ca: there is no PEM certificate in " + a.file("text.pem")},
		"no certificate":   {func(f *config.TLS) { f.Certificate = a.file("none.pem") }, "zk.tls_certificate: open " + a.file("none.pem")},
		"another's key":    {func(f *config.TLS) { f.Key = a.file("ca-key.pem") }, "zk.tls_certificate: "},
		"nothing but a CA": {func(f *config.TLS) { *f = config.TLS{CA: f.CA} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := good
			tt.change(&files)
			c, err := clientTLS(files, "zk.tls_ca", "zk.tls_certificate")
			if tt.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
					t.Fatalf("error %v, want %q", err, tt.want)
				}
				return
			}
			expect.NoError(t, err)
			if shown := len(c.Certificates) == 1; c.RootCAs == nil || shown != (files.Certificate != "") {
				t.Errorf("%d certificates shown, others checked against %v", len(c.Certificates), c.RootCAs)
			}
		})
	}
}
