package main

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
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
		k, err := openKeyring(files, slog.New(slog.DiscardHandler))
		expect.NoError(t, err)
		if err := k.checkAs(test.host); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	serial := a.issue("node", nil)
	var log bytes.Buffer
	k, err := openKeyring(files, slog.New(slog.NewTextHandler(&log, nil)))
	expect.NoError(t, err)
	expect.NoError(t, k.checkAs("localhost"))
	for _, step := range []struct {
		change func(*x509.Certificate)
		taken  bool
	}{{serverOnly, false}, {nil, true}} {
		fresh := a.issue("node", step.change)
		later := time.Now().Add(time.Hour)
		expect.NoError(t, os.Chtimes(a.file("node.pem"), later, later))
		k.looked = time.Time{}
		got := k.now().own.Leaf.SerialNumber.Int64()
		if want := map[bool]int64{true: fresh, false: serial}[step.taken]; got != want {
			t.Errorf("the certificate %d is used, want %d; logged: %s", got, want, &log)
		}
	}
	if !strings.Contains(log.String(), "the old ones stay") || !strings.Contains(log.String(), "incompatible key usage") {
		t.Errorf("logged: %s", &log)
	}
}
