package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"strings"
	"time"
)

// discard returns a logger that logs nothing.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// secretChecks check the files that hold tokens and secrets: that they are good and not readable for everybody.
func (d *deep) secretChecks() []deepCheck {
	var all []deepCheck
	if d.c.Auth.TokensFile != "" {
		all = append(all, deepCheck{"auth.tokens_file", d.checkTokens})
	}
	for _, s := range []struct {
		key, file string
		read      func() error
	}{
		{"s3.secret_access_key_file", d.c.S3.SecretAccessKeyFile, func() error { _, err := s3Secret(&d.c.S3); return err }},
		{"azure.account_key_file", d.c.Azure.AccountKeyFile, d.azureSecret},
		{"azure.sas_token_file", d.c.Azure.SASTokenFile, d.azureSecret},
		{"sharding.secret_file", d.c.Sharding.SecretFile, func() error { _, err := peerSecret(&d.c.Sharding); return err }},
		{"zk.auth_file", d.c.ZK.AuthFile, func() error { _, err := zkAuth(&d.c.ZK); return err }},
		{"events.secret_file", d.c.Events.SecretFile, func() error { _, err := target(&d.c.Events); return err }},
		{"events.webhook_file", d.c.Events.WebhookFile, func() error { _, err := target(&d.c.Events); return err }},
		{"hdfs.keytab", d.c.HDFS.Keytab, func() error { return readable(d.c.HDFS.Keytab) }},
		{"tls.key", d.c.TLS.Key, func() error { return readable(d.c.TLS.Key) }},
		{"zk.tls_key", d.c.ZK.TLSKey, func() error { return readable(d.c.ZK.TLSKey) }},
	} {
		if s.file != "" {
			all = append(all, deepCheck{s.key, func(context.Context) finding { return checkSecret(s.file, s.read()) }})
		}
	}
	return all
}

func (d *deep) azureSecret() error {
	_, err := readAzureSecrets(&d.c.Azure)
	return err
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

func checkSecret(path string, err error) finding {
	if err != nil {
		return failedBy(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return failedBy(err)
	}
	const byOthers = 0o007
	if mode := info.Mode().Perm(); mode&byOthers != 0 {
		return warned("%s has mode %#o: everybody on this machine may read it; chmod o= %s", path, mode, path)
	}
	return found("%s can be read", path)
}

func (d *deep) checkTokens(context.Context) finding {
	t, err := openTokens(d.c.Auth, discard())
	if err != nil {
		return failedBy(err)
	}
	if err := t.tokens.Exposed(); err != nil {
		return warned("%v; chmod o=,g-w %s", err, d.c.Auth.TokensFile)
	}
	return found("%s has %d tokens", d.c.Auth.TokensFile, t.tokens.Len())
}

// expiresSoon is the time before the end of a certificate from which a warning is given.
const expiresSoon = 30 * 24 * time.Hour

// certificateChecks check the certificates of this node, as other nodes do, and the ends of all.
func (d *deep) certificateChecks() []deepCheck {
	var all []deepCheck
	if d.c.TLS.Certificate != "" {
		all = append(all, deepCheck{"tls.certificate", d.checkOwnCertificate})
	}
	for _, f := range []struct{ key, file string }{
		{"tls.ca", d.c.TLS.CA}, {"tls.client_ca", d.c.TLS.ClientCA}, {"zk.tls_ca", d.c.ZK.TLSCA}, {"zk.tls_certificate", d.c.ZK.TLSCertificate},
	} {
		if f.file != "" {
			all = append(all, deepCheck{f.key, func(context.Context) finding { return checkPEM(f.file, time.Now()) }})
		}
	}
	return all
}

func (d *deep) checkOwnCertificate(context.Context) finding {
	keys, err := openKeyring(d.c.TLS, discard())
	if err != nil {
		return failedBy(err)
	}
	leaf := keys.loaded.own.Leaf
	names := strings.Join(namesOf(leaf), ", ")
	if d.c.Sharding.Enabled {
		host, err := advertisedHost(d.c.Sharding.AdvertisedHostname)
		if err != nil {
			return failedBy(err)
		}
		if err := keys.checkAs(host); err != nil {
			return failed("%v; its names are %s", err, names)
		}
	}
	f := validity(d.c.TLS.Certificate, leaf, time.Now())
	if f.Level != levelFailed && !d.c.Sharding.Enabled && keys.loaded.nodes != nil {
		if err := keys.loaded.verify(x509.VerifyOptions{Roots: keys.loaded.nodes, KeyUsages: serverUsage}); err != nil {
			return warned("tls.ca does not verify %s: clients that have the same authorities refuse it: %v", d.c.TLS.Certificate, err)
		}
	}
	if f.Level != levelOK {
		return f
	}
	return found("%s is for %s, and valid until %s", d.c.TLS.Certificate, names, leaf.NotAfter.UTC().Format(time.DateOnly))
}

func namesOf(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return []string{"no name (subjectAltName is missing)"}
	}
	return names
}

// checkPEM checks the validity of the certificates in a file.
func checkPEM(path string, now time.Time) finding {
	doc, err := os.ReadFile(path)
	if err != nil {
		return failedBy(err)
	}
	n, worst := 0, finding{Level: levelOK}
	for block, rest := pem.Decode(doc); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return failed("a certificate in %s cannot be read: %v", path, err)
		}
		n++
		if f := validity(path, c, now); worse(f, worst) {
			worst = f
		}
	}
	switch {
	case n == 0:
		return failed("%s has no certificate in PEM form", path)
	case worst.Level != levelOK:
		return worst
	}
	return found("%s has %d certificates, valid for 30 days and more", path, n)
}

// worse reports whether a is worse than b.
func worse(a, b finding) bool {
	rank := map[string]int{levelOK: 0, levelWarning: 1, levelFailed: 2}
	return rank[a.Level] > rank[b.Level]
}

// validity checks the time of a certificate.
func validity(path string, c *x509.Certificate, now time.Time) finding {
	subject := c.Subject.String()
	switch left := c.NotAfter.Sub(now); {
	case left < 0:
		return failed("%s: the certificate of %s has expired at %s: replace it", path, subject, c.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.NotBefore):
		return failed("%s: the certificate of %s is valid from %s on only: correct the clock of this machine, or wait", path, subject, c.NotBefore.UTC().Format(time.RFC3339))
	case left < expiresSoon:
		return warned("%s: the certificate of %s expires in %d days, at %s: replace it", path, subject, int(left.Hours()/24), c.NotAfter.UTC().Format(time.RFC3339))
	}
	return found("")
}
