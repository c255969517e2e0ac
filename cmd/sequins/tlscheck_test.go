package main

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/config"
	"sequins/test/expect"
)

// A node of a cluster refuses a certificate that other nodes would refuse, and says why; at a change of the
// files it keeps the old one.
func TestNodesCheckTheirOwnCertificate(t *testing.T) {
	a, foreign := newAuthority(t, "ca"), newAuthority(t, "ca")
	files := config.TLS{Certificate: a.file("node.pem"), Key: a.file("node-key.pem"), CA: a.file("ca.pem"), ClientCA: a.file("ca.pem")}
	serverOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for name, test := range map[string]struct {
		change   func(*x509.Certificate)
		host     string
		clientCA string
		want     string
	}{
		"good":                       {host: "localhost", clientCA: files.ClientCA},
		"by address":                 {host: "127.0.0.1", clientCA: files.ClientCA},
		"with a dot at the end":      {host: "localhost.", clientCA: files.ClientCA},
		"another host":               {host: "node1.example", clientCA: files.ClientCA, want: "not node1.example"},
		"no client's":                {change: serverOnly, host: "localhost", clientCA: files.ClientCA, want: "tls.client_ca for client authentication: x509: certificate specifies an incompatible key usage"},
		"no client's, none demanded": {change: serverOnly, host: "localhost"},
		"no server's": {change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, host: "localhost",
			want: "tls.ca: x509: certificate specifies an incompatible key usage"},
		"expired":            {change: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, host: "localhost", want: "expired"},
		"clients of another": {host: "localhost", clientCA: foreign.file("ca.pem"), want: "tls.client_ca for client authentication: x509: certificate signed by unknown authority"},
	} {
		a.issue("node", test.change)
		files := files
		files.ClientCA = test.clientCA
		_, err := openKeyring(files, test.host, slog.New(slog.DiscardHandler))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	serial := a.issue("node", nil)
	var log bytes.Buffer
	k, err := openKeyring(files, "localhost", slog.New(slog.NewTextHandler(&log, nil)))
	expect.NoError(t, err)
	for _, step := range []struct {
		change func(*x509.Certificate)
		taken  bool
	}{{serverOnly, false}, {nil, true}} {
		fresh := a.issue("node", step.change)
		later := time.Now().Add(time.Hour)
		expect.NoError(t, os.Chtimes(a.file("node.pem"), later, later))
		_ = k.look(false) // it is logged
		got := k.now().own.Leaf.SerialNumber.Int64()
		if want := map[bool]int64{true: fresh, false: serial}[step.taken]; got != want {
			t.Errorf("the certificate %d is used, want %d; logged: %s", got, want, &log)
		}
	}
	if !strings.Contains(log.String(), "the old ones stay") || !strings.Contains(log.String(), "incompatible key usage") {
		t.Errorf("logged: %s", &log)
	}
}

// clientOnly makes a certificate one that is for clients only.
func clientOnly(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

func notYet(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }

// A certificate that is not for servers is an error at the start and in check-config, also without a cluster.
func TestCertificatesThatAreNotForServers(t *testing.T) {
	a := newAuthority(t, "ca")
	conf := fmt.Sprintf("source = %q\nlocal_store = %q\n[tls]\ncertificate = %q\nkey = %q\n", t.TempDir(), t.TempDir(), a.file("node.pem"), a.file("node-key.pem"))
	file := filepath.Join(t.TempDir(), "sequins.conf")
	writeFile(t, file, conf)
	for name, test := range map[string]struct {
		usages  []x509.ExtKeyUsage
		unknown []asn1.ObjectIdentifier
		good    bool
	}{
		"none":           {nil, nil, true},
		"servers":        {[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, nil, true},
		"any":            {[]x509.ExtKeyUsage{x509.ExtKeyUsageAny}, nil, true},
		"both":           {[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, nil, true},
		"clients":        {[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, nil, false},
		"something else": {nil, []asn1.ObjectIdentifier{{1, 2, 3}}, false},
	} {
		a.issue("node", func(c *x509.Certificate) { c.ExtKeyUsage, c.UnknownExtKeyUsage = test.usages, test.unknown })
		files := config.TLS{Certificate: a.file("node.pem"), Key: a.file("node-key.pem")}
		if _, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.issue("node", clientOnly)
	const want = "tls.certificate: clients will refuse it: x509: certificate specifies an incompatible key usage"
	for _, args := range [][]string{{"check-config", file}, {"--config", file}} {
		if r := sequins(t, args...); r.code != exitFailure || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// A single node starts with a certificate that has expired, and logs it. It does not take one when the files change.
func TestCertificatesThatClientsRefuse(t *testing.T) {
	a := newAuthority(t, "ca")
	files := config.TLS{Certificate: a.file("node.pem"), Key: a.file("node-key.pem"), ClientCA: a.file("ca.pem")}
	for name, change := range map[string]func(*x509.Certificate){"is after": expired, "is before": notYet} {
		a.issue("node", change)
		if k, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); k == nil || !isExpired(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.issue("node", clientOnly)
	if _, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); err == nil || isExpired(err) {
		t.Errorf("not for servers: %v", err)
	}

	serial := a.issue("node", nil)
	var log bytes.Buffer
	k, err := openKeyring(files, "", slog.New(slog.NewTextHandler(&log, nil)))
	expect.NoError(t, err)
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
	later := time.Now().Add(time.Hour)
	look := func(file string) *loadedKeys {
		t.Helper()
		later = later.Add(time.Hour) // so that it differs whatever the file system's clock
		expect.NoError(t, os.Chtimes(file, later, later))
		_ = k.look(false) // its error is in problem
		return k.now()
	}
	for _, step := range []struct {
		change func(*x509.Certificate)
		fault  string
	}{{expired, "is after"}, {notYet, "is before"}, {clientOnly, "incompatible key usage"}, {nil, ""}} {
		fresh := a.issue("node", step.change)
		log.Reset()
		got := look(files.Certificate).own.Leaf.SerialNumber.Int64()
		if step.fault == "" {
			serial = fresh
		}
		if problem := k.problem(); got != serial || !strings.Contains(problem, step.fault) || (step.fault == "") != (problem == "") {
			t.Errorf("the certificate %d is used, want %d; the problem is %q", got, serial, problem)
		}
		if step.fault != "" && !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("logged: %s", &log)
		}
	}

	// The certificate in use has expired: new authorities of clients are taken all the same.
	a.issue("node", expired)
	k, err = openKeyring(files, "", slog.New(slog.DiscardHandler))
	if !isExpired(err) {
		t.Fatal(err)
	}
	old := k.now().server
	if look(files.ClientCA).server == old || k.problem() != "" {
		t.Errorf("client_ca was not read again: %s", k.problem())
	}
}
