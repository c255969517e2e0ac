//go:build integration

package alerts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sequins/test/process"
)

// oldCertificate: one that is good for three days is put in the place of one that was good for longer.
func oldCertificate(s *scene) {
	s.write("1")
	c := s.config("")
	certificate, key := filepath.Join(s.dir, "node.pem"), filepath.Join(s.dir, "node-key.pem")
	s.certify(certificate, key, 90*24*time.Hour)
	c.Sections = "[tls]\ncertificate = \"" + certificate + "\"\nkey = \"" + key + "\"\n"
	n := process.Launch(s, c)
	n.WaitLog(s, `msg="version active"`)
	s.watch(n)
	s.quiet("SequinsCertificateExpires", at(n))
	end := s.certify(certificate, key, 72*time.Hour)
	s.fires("SequinsCertificateExpires", at(n))
	until, err := exec.Command("openssl", "x509", "-noout", "-enddate", "-in", certificate).CombinedOutput()
	if err != nil {
		s.Errorf("%v: %s", err, until)
	}
	s.leads("SequinsCertificateExpires", "openssl x509 -noout -enddate -in", string(until), end.UTC().Format("Jan _2 15:04:05 2006"))
	s.certify(certificate, key, 90*24*time.Hour)
	s.quiet("SequinsCertificateExpires", at(n))
	s.leads("SequinsCertificateExpires", `the log says "the certificates have changed"`, n.Log(), "the certificates have changed, and are used from now on")
}

// certify writes a certificate that is good for a while, signed by itself, and its key. It returns when it ends.
func (s *scene) certify(certificate, key string, good time.Duration) (end time.Time) {
	s.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(good), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		s.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		s.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := errors.Join(os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600), os.Rename(path+".new", path)); err != nil {
			s.Fatal(err)
		}
	}
	return template.NotAfter
}
