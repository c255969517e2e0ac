package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"sequins/source"
)

func TestKerberosOptions(t *testing.T) {
	t.Setenv("KRB5CCNAME", "FILE:/of/kinit")
	kerberised := configure(t, map[string]string{"hadoop.security.authentication": "Kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@REALM"})
	tests := []struct {
		name   string
		o      Options
		keytab string
		cache  string
		err    string
	}{
		{"a keytab", Options{Principal: "p", Keytab: "k", NamenodePrincipal: "nn/_HOST@REALM"}, "k", "", ""},
		{"a cache", Options{CredentialCache: "/c", NamenodePrincipal: "nn/_HOST"}, "", "/c", ""},
		{"a typed cache", Options{CredentialCache: "FILE:c", NamenodePrincipal: "nn/_HOST"}, "", "c", ""},
		{"the configuration", Options{ConfigDir: kerberised}, "", "/of/kinit", ""},
		{"the configuration and a keytab", Options{ConfigDir: kerberised, Principal: "p", Keytab: "k"}, "k", "", ""},
		{"a cache in the kernel", Options{CredentialCache: "KEYRING:x", NamenodePrincipal: "nn/_HOST"}, "", "", "KEYRING:x is not a file"},
		{"no namenode", Options{Principal: "p", Keytab: "k"}, "", "", "dfs.namenode.kerberos.principal"},
		{"no principal", Options{Keytab: "/k", NamenodePrincipal: "nn/_HOST"}, "", "", "keytab /k requires a principal"},
		{"no keytab", Options{Principal: "p", NamenodePrincipal: "nn/_HOST"}, "", "", "principal p requires a keytab"},
		{"no keytab, and a cache", Options{Principal: "p", CredentialCache: "c", NamenodePrincipal: "nn/_HOST"}, "", "", "principal p requires a keytab"},
		{"both", Options{Principal: "p", Keytab: "k", CredentialCache: "c", NamenodePrincipal: "nn/_HOST"}, "", "", "both"},
	}
	for _, tt := range tests {
		tt.o.URL = "hdfs://host/"
		s, err := New(tt.o)
		if tt.err != "" {
			wantError(t, err, nil, tt.err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if k := s.kerberos; k.keytab != tt.keytab || k.cache != tt.cache || k.namenode != "nn/_HOST" || s.library.KerberosServicePrincipleName != "nn/_HOST" {
			t.Errorf("%s: %+v", tt.name, k)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestService(t *testing.T) {
	for principal, want := range map[string]string{"nn/_HOST": "nn/host", "nn/_HOSTS": "nn/_HOSTS", "nn/fixed": "nn/fixed", "nn": "nn"} {
		k := &kerberos{namenode: principal}
		if got := k.service("host:8020"); got != want {
			t.Errorf("%s: %s, want %s", principal, got, want)
		}
	}
}

// realm writes a krb5.conf whose KDC is at an address, and a keytab.
func realm(t *testing.T, kdc string) Options {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "krb5.conf")
	text := fmt.Sprintf("[libdefaults]\n default_realm = REALM\n udp_preference_limit = 1\n[realms]\n REALM = {\n  kdc = %s\n }\n", kdc)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{URL: "hdfs://127.0.0.1:1/", Principal: "me/_HOST", Keytab: filepath.Join(dir, "keytab"), NamenodePrincipal: "nn/_HOST", Krb5Conf: conf}
	writeKeytab(t, o.Keytab)
	return o
}

func writeKeytab(t *testing.T, path string) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	keys := keytab.New()
	if err := keys.AddEntry("me/"+host, "REALM", "secret", time.Now(), 1, etypeID.AES128_CTS_HMAC_SHA1_96); err != nil {
		t.Fatal(err)
	}
	b, err := keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A silent KDC does not block callers whose context ends.
func TestSilentKDC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s, err := New(realm(t, ln.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func(context.Context) error{
		"one who asks, and one who waits to ask": func(ctx context.Context) error { _, err := source.Databases(ctx, s); return err },
		"another": func(ctx context.Context) error {
			_, err := s.Open(ctx, "db", "1", source.File{Name: "x"}, source.ReadOptions{})
			return err
		},
	} {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		took(t, start, 100*time.Millisecond, 2*time.Second)
		cancel()
	}
	if err := s.Close(); err != nil { // waits until the library has given up
		t.Error(err)
	}
}

// What is wrong with a configuration is said, and is nothing about the data.
func TestKerberosFiles(t *testing.T) {
	for what, spoil := range map[string]func(o *Options){
		"no such file or directory":      func(o *Options) { o.Keytab += "x" },
		"krb5.conf":                      func(o *Options) { o.Krb5Conf += "x" },
		"keytab":                         func(o *Options) { _ = os.WriteFile(o.Keytab, []byte("no keytab at all"), 0o600) },
		"the credential cache /dev/null": func(o *Options) { o.Principal, o.Keytab, o.CredentialCache = "", "", "/dev/null" },
		"me/_HOST with the keytab":       func(o *Options) { _ = os.Truncate(o.Keytab, 20) },
		"communication error with KDC":   func(*Options) {},
	} {
		o := realm(t, "127.0.0.1:1")
		o.RetryFor = 200 * time.Millisecond
		spoil(&o)
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = source.Databases(t.Context(), s)
		wantError(t, err, nil, what, "list hdfs://127.0.0.1:1", "Kerberos")
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is taken as there being no data", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
