package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/authority"
	"sequins/test/expect"
)

// clientOf returns one that trusts the authority, with the certificate of a name if that is not "".
func clientOf(t *testing.T, a *authority.Authority, name string) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: a.Pool()}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.File(name+".pem"), a.File(name+"-key.pem"))
		expect.NoError(t, err)
		c.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// serveTLS starts a node with [tls], and returns its https URL.
func serveTLS(t *testing.T, a *authority.Authority, clientCA string) (s *served, base string) {
	t.Helper()
	dir := t.TempDir()
	conf := fmt.Sprintf("source = %q\nlocal_store = %q\n[tls]\ncertificate = %q\nkey = %q\nca = %q\nclient_ca = %q\n",
		demoSource(t, dir), filepath.Join(dir, "store"), a.File("node.pem"), a.File("node-key.pem"), a.File("ca.pem"), clientCA)
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
	t.Parallel()
	a := authority.New(t, "ca")
	a.Issue("node", nil)
	s, base := serveTLS(t, a, "")
	c := clientOf(t, a, "")
	eventuallyOK(t, c, base)
	if resp, err := http.Get(s.base + "/livez"); err == nil && resp.StatusCode == http.StatusOK {
		t.Error("it answers without TLS")
	}
	sequins(t, "status", "--ca", a.File("ca.pem"), "--server", base).wants(t, exitOK)
	sequins(t, "status", "--server", base).wants(t, exitUnreachable, "sequins: "+base+" has a certificate that cannot be used: x509: certificate signed by unknown authority: name the file with the certificate of its issuer with --ca")
	sequins(t, "status", "--server", strings.TrimPrefix(base, "https://")).wants(t, exitUnreachable, "sequins: http"+strings.TrimPrefix(base, "https")+" speaks TLS: use "+base+", with --ca FILE if ")

	serial := a.Issue("node", nil)
	changed := time.Now().Add(time.Minute) // so that it differs whatever the file system's clock
	expect.NoError(t, os.Chtimes(a.File("node.pem"), changed, changed))
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		if resp := eventuallyOK(t, c, base); resp.TLS.PeerCertificates[0].SerialNumber.Int64() == serial {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the new certificate is not used")
		}
	}
	writeFile(t, a.File("node.pem"), "nonsense")
	s.t.Log("a certificate that is not good, for longer than the time between two looks")
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		eventuallyOK(t, c, base)
	}
	s.waitFor(`files have changed and are not good; the old ones stay" files="the certificates"`)
	if r := sequins(t, "status", "--ca", a.File("ca.pem"), "--server", base); r.code != exitUnhealthy || !strings.Contains(r.stdout, "The new certificates are not in use: tls.certificate: ") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}

	a.Issue("node", nil)
	later := changed.Add(time.Minute)
	expect.NoError(t, os.Chtimes(a.File("node.pem"), later, later))
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		r := sequins(t, "status", "--ca", a.File("ca.pem"), "--server", base)
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
	t.Parallel()
	a := authority.New(t, "ca")
	a.Issue("node", nil)
	a.Issue("client", nil)
	s, base := serveTLS(t, a, a.File("ca.pem"))
	eventuallyOK(t, clientOf(t, a, "client"), base)
	if _, err := clientOf(t, a, "").Get(base + "/livez"); err == nil {
		t.Error("it answers somebody without a certificate")
	}
	stranger := authority.New(t, "ca")
	stranger.Issue("client", nil)
	unknown := clientOf(t, stranger, "client")
	unknown.Transport.(*http.Transport).TLSClientConfig.RootCAs = a.Pool()
	if _, err := unknown.Get(base + "/livez"); err == nil {
		t.Error("it answers somebody with a certificate of somebody else")
	}
	sequins(t, "status", "--ca", a.File("ca.pem"), "--certificate", a.File("client.pem"), "--certificate-key", a.File("client-key.pem"), "--server", base).
		wants(t, exitOK)
	shown := []string{"--ca", a.File("ca.pem"), "--certificate", a.File("client.pem"), "--certificate-key", a.File("client-key.pem")}
	db, key, _ := strings.Cut(strings.TrimPrefix(demoPath, "/"), "/")
	for _, args := range [][]string{{"get", "--server", base, db, key}, {"get", "--server", base, db, key, key}, {"scan", "--server", base, db, "--prefix", key}} {
		if r := sequins(t, append(args, shown...)...); r.code != exitOK || !strings.Contains(r.stdout, "{") {
			t.Errorf("%v: %+v", args, r)
		}
		sequins(t, append(args, "--ca", a.File("ca.pem"))...).wants(t, exitUnreachable, "sequins: "+base+" refuses the TLS connection (tls: certificate required): if it wants a certificate of its clients, name one that is valid with --certificate")
	}
	cmd := command(t, "status") // by the configuration of this machine
	cmd.Dir = t.TempDir()
	port := base[len("https://"):]
	writeFile(t, filepath.Join(cmd.Dir, "sequins.conf"), fmt.Sprintf("source = \"/x\"\nbind = %q\n[tls]\ncertificate = %q\nkey = %q\n",
		port, a.File("node.pem"), a.File("node-key.pem")))
	finish(t, cmd).wants(t, exitOK)
	_ = s
}

// A certificate that is not for servers is an error at the start and in check-config, also without a cluster.
func TestCertificateThatIsNotForServers(t *testing.T) {
	a := authority.New(t, "ca")
	conf := fmt.Sprintf("source = %q\nlocal_store = %q\n[tls]\ncertificate = %q\nkey = %q\n", t.TempDir(), t.TempDir(), a.File("node.pem"), a.File("node-key.pem"))
	file := filepath.Join(t.TempDir(), "sequins.conf")
	writeFile(t, file, conf)
	a.Issue("node", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	const want = "tls.certificate: clients will refuse it: x509: certificate specifies an incompatible key usage"
	for _, args := range [][]string{{"check-config", file}, {"--config", file}} {
		if r := sequins(t, args...); r.code != exitFailure || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}
