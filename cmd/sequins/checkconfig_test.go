package main

import (
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// check-config refuses certificates with which a node would not start, and warns of those that clients will refuse.
func TestCheckConfigLooksAtCertificates(t *testing.T) {
	a := newAuthority(t, "ca")
	a.issue("node", nil)
	a.issue("other", nil)
	a.issue("old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	a.issue("early", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
	const cluster = "[zk]\nservers = [\"localhost:2181\"]\n[sharding]\nenabled = true\nadvertised_hostname = %q\n"
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	for name, test := range map[string]struct {
		certificate, key, more string
		code                   int
		want                   string
	}{
		"good":                   {"node", "node", "", exitOK, ""},
		"of different pairs":     {"node", "other", "", exitFailure, "tls.certificate: tls: private key does not match"},
		"expired":                {"old", "old", "", exitOK, "warning: tls.certificate: it has expired at "},
		"not valid yet":          {"early", "early", "", exitOK, "warning: tls.certificate: it is valid from "},
		"on another machine":     {"none", "none", "", exitOK, "warning: the certificate was not checked: tls.certificate: open "},
		"good in a cluster":      {"node", "node", fmt.Sprintf(cluster, "localhost"), exitOK, ""},
		"expired in a cluster":   {"old", "old", fmt.Sprintf(cluster, "localhost"), exitFailure, "expired"},
		"of another host's name": {"node", "node", fmt.Sprintf(cluster, "node1.example"), exitFailure, "not node1.example"},
	} {
		writeFile(t, conf, fmt.Sprintf("source = \"/data\"\n[tls]\ncertificate = %q\nkey = %q\nca = %q\n%s",
			a.file(test.certificate+".pem"), a.file(test.key+"-key.pem"), a.file("ca.pem"), test.more))
		if r := sequins(t, "check-config", conf); r.code != test.code || !strings.Contains(r.stderr, test.want) || (r.stderr == "") != (test.want == "") {
			t.Errorf("%s: exit code %d, %s", name, r.code, r.stderr)
		}
	}
}
