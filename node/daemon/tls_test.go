package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"sequins/config"
	"sequins/test/authority"
	"sequins/test/expect"
)

// Other nodes' certificates are checked against tls.ca, and for the name that they are asked by.
func TestTLSBetweenNodes(t *testing.T) {
	a, stranger := authority.New(t, "ca"), authority.New(t, "ca")
	a.Issue("node", nil)
	stranger.Issue("node", nil)
	a.Issue("other", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere"} })
	for name, tt := range map[string]struct {
		by   *authority.Authority
		cert string
		ok   bool
	}{
		"one of us":         {a, "node", true},
		"a stranger":        {stranger, "node", false},
		"by another's name": {a, "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, err := openKeyring(config.TLS{Certificate: tt.by.File(tt.cert + ".pem"), Key: tt.by.File(tt.cert + "-key.pem"),
				ClientCA: a.File("ca.pem")}, "", slog.New(slog.DiscardHandler))
			expect.NoError(t, err)
			ours, err := openKeyring(config.TLS{Certificate: a.File("node.pem"), Key: a.File("node-key.pem"), CA: a.File("ca.pem")},
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
	a := authority.New(t, "ca")
	a.Issue("node", nil)
	expect.NoError(t, os.WriteFile(a.File("empty.pem"), nil, 0o600))
	good := config.TLS{Certificate: a.File("node.pem"), Key: a.File("node-key.pem")}
	for name, change := range map[string]func(*config.TLS){
		"tls.certificate": func(c *config.TLS) { c.Certificate = a.File("none.pem") },
		"tls.ca":          func(c *config.TLS) { c.CA = a.File("empty.pem") },
		"tls.client_ca":   func(c *config.TLS) { c.ClientCA = a.File("none.pem") },
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
	a := authority.New(t, "ca")
	a.Issue("client", nil)
	expect.NoError(t, os.WriteFile(a.File("text.pem"), []byte("nonsense"), 0o600))
	good := config.TLS{CA: a.File("ca.pem"), Certificate: a.File("client.pem"), Key: a.File("client-key.pem")}
	for name, tt := range map[string]struct {
		change func(*config.TLS)
		want   string
	}{
		"nothing wrong":    {func(*config.TLS) {}, ""},
		"no CA":            {func(f *config.TLS) { f.CA = a.File("none.pem") }, "zk.tls_ca: open " + a.File("none.pem")},
		"CA of no sense":   {func(f *config.TLS) { f.CA = a.File("text.pem") }, "zk.tls_ca: there is no PEM certificate in " + a.File("text.pem")},
		"no certificate":   {func(f *config.TLS) { f.Certificate = a.File("none.pem") }, "zk.tls_certificate: open " + a.File("none.pem")},
		"another's key":    {func(f *config.TLS) { f.Key = a.File("ca-key.pem") }, "zk.tls_certificate: "},
		"nothing but a CA": {func(f *config.TLS) { *f = config.TLS{CA: f.CA} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := good
			tt.change(&files)
			c, err := ClientTLS(files, "zk.tls_ca", "zk.tls_certificate")
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

// A node of a cluster refuses a certificate that other nodes would refuse, and says why; at a change of the
// files it keeps the old one.
func TestNodesCheckTheirOwnCertificate(t *testing.T) {
	a, foreign := authority.New(t, "ca"), authority.New(t, "ca")
	files := config.TLS{Certificate: a.File("node.pem"), Key: a.File("node-key.pem"), CA: a.File("ca.pem"), ClientCA: a.File("ca.pem")}
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
		"clients of another": {host: "localhost", clientCA: foreign.File("ca.pem"), want: "tls.client_ca for client authentication: x509: certificate signed by unknown authority"},
	} {
		a.Issue("node", test.change)
		files := files
		files.ClientCA = test.clientCA
		_, err := openKeyring(files, test.host, slog.New(slog.DiscardHandler))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	serial := a.Issue("node", nil)
	var log bytes.Buffer
	k, err := openKeyring(files, "localhost", slog.New(slog.NewTextHandler(&log, nil)))
	expect.NoError(t, err)
	for _, step := range []struct {
		change func(*x509.Certificate)
		taken  bool
	}{{serverOnly, false}, {nil, true}} {
		fresh := a.Issue("node", step.change)
		later := time.Now().Add(time.Hour)
		expect.NoError(t, os.Chtimes(a.File("node.pem"), later, later))
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

// A certificate that is not for servers is an error, also without a cluster.
func TestCertificatesThatAreNotForServers(t *testing.T) {
	a := authority.New(t, "ca")
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
		a.Issue("node", func(c *x509.Certificate) { c.ExtKeyUsage, c.UnknownExtKeyUsage = test.usages, test.unknown })
		files := config.TLS{Certificate: a.File("node.pem"), Key: a.File("node-key.pem")}
		if _, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A single node starts with a certificate that has expired, and logs it. It does not take one when the files change.
func TestCertificatesThatClientsRefuse(t *testing.T) {
	a := authority.New(t, "ca")
	files := config.TLS{Certificate: a.File("node.pem"), Key: a.File("node-key.pem"), ClientCA: a.File("ca.pem")}
	for name, change := range map[string]func(*x509.Certificate){"is after": expired, "is before": notYet} {
		a.Issue("node", change)
		if k, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); k == nil || !isExpired(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.Issue("node", clientOnly)
	if _, err := openKeyring(files, "", slog.New(slog.DiscardHandler)); err == nil || isExpired(err) {
		t.Errorf("not for servers: %v", err)
	}

	serial := a.Issue("node", nil)
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
		fresh := a.Issue("node", step.change)
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
	a.Issue("node", expired)
	k, err = openKeyring(files, "", slog.New(slog.DiscardHandler))
	if !isExpired(err) {
		t.Fatal(err)
	}
	old := k.now().server
	if look(files.ClientCA).server == old || k.problem() != "" {
		t.Errorf("client_ca was not read again: %s", k.problem())
	}
}
