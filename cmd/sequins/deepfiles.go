package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// checkSecrets opens the files that hold tokens, keys and secrets, and warns of those that everybody may read. What is in them has been
// checked before: see checkFiles.
func (d *deep) checkSecrets(context.Context) finding {
	named := map[string]string{"auth.tokens_file": d.c.Auth.TokensFile, "hdfs.keytab": d.c.HDFS.Keytab, "tls.key": d.c.TLS.Key, "zk.tls_key": d.c.ZK.TLSKey}
	for key, file := range d.c.Files {
		if key != "sharding.zone" {
			named[key+"_file"] = file
		}
	}
	var unread []error
	var exposed []string
	files := 0
	for key, file := range named {
		if file == "" {
			continue
		}
		files++
		const byOthers = 0o007
		f, err := os.Open(file)
		if err == nil {
			var info os.FileInfo
			if info, err = f.Stat(); err == nil && info.Mode().Perm()&byOthers != 0 {
				exposed = append(exposed, file)
			}
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			unread = append(unread, fmt.Errorf("%s: %w", key, err))
		}
	}
	switch {
	case len(unread) > 0:
		return failedBy(errors.Join(unread...))
	case len(exposed) > 0:
		return warned("everybody on this machine may read them: chmod o= %s", strings.Join(exposed, " "))
	}
	return found("%d files can be read, and not by everybody", files)
}

// expiresSoon is the time before the end of a certificate from which a warning is given.
const expiresSoon = 30 * 24 * time.Hour

// checkCertificates opens the certificate of this node, which other nodes must accept, and finds those of all that expire soon.
func (d *deep) checkCertificates(context.Context) finding {
	if err := checkCertificates(d.c); err != nil {
		return failedBy(err)
	}
	var soonest *x509.Certificate
	for _, file := range []string{d.c.TLS.Certificate, d.c.TLS.CA, d.c.TLS.ClientCA, d.c.ZK.TLSCA, d.c.ZK.TLSCertificate} {
		if file == "" {
			continue
		}
		doc, err := os.ReadFile(file)
		if err != nil {
			return failedBy(err)
		}
		for block, rest := pem.Decode(doc); block != nil; block, rest = pem.Decode(rest) {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil && (soonest == nil || c.NotAfter.Before(soonest.NotAfter)) {
				soonest = c
			}
		}
	}
	if soonest == nil {
		return found("none is in a file")
	}
	left, end := time.Until(soonest.NotAfter), soonest.NotAfter.UTC().Format(time.RFC3339)
	if left < expiresSoon {
		return warned("the certificate of %s expires in %d days, at %s: replace it", soonest.Subject, int(left.Hours()/24), end)
	}
	return found("the first one that expires, of %s, is valid until %s", soonest.Subject, end)
}
