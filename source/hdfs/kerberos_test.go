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
	"sequins/test/expect"
)

func TestKerberosOptions(t *testing.T) {
	unnamed := configure(t, map[string]string{"hadoop.security.authentication": "simple"})
	named := configure(t, map[string]string{"dfs.namenode.kerberos.principal": "nn/_HOST@REALM"})
	kerberised := configure(t, map[string]string{"hadoop.security.authentication": "Kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@REALM"})
	tests := []struct {
		name, variable string // KRB5CCNAME
		o              Options
		keytab         string
		cache          string
		err            string
	}{
		{"a keytab", "/c", Options{ConfigDir: named, Principal: "p", Keytab: "k"}, "k", "", ""},
		{"a cache", "/c", Options{ConfigDir: kerberised}, "", "/c", ""},
		{"a typed cache", "FILE:c", Options{ConfigDir: kerberised}, "", "c", ""},
		{"the cache of this user", "", Options{ConfigDir: kerberised}, "", fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()), ""},
		{"the configuration and a keytab", "/c", Options{ConfigDir: kerberised, Principal: "p", Keytab: "k"}, "k", "", ""},
		{"a cache in the kernel", "KEYRING:x", Options{ConfigDir: kerberised}, "", "", "KEYRING:x is not a file"},
		{"no namenode", "", Options{ConfigDir: unnamed, Principal: "p", Keytab: "k"}, "", "", "dfs.namenode.kerberos.principal"},
		{"no principal", "", Options{ConfigDir: named, Keytab: "/k"}, "", "", "keytab /k requires a principal"},
		{"no keytab", "/c", Options{ConfigDir: named, Principal: "p"}, "", "", "principal p requires a keytab"},
	}
	for _, tt := range tests {
		t.Setenv("KRB5CCNAME", tt.variable)
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
		s.kerberos.close()
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
	expect.NoError(t, os.WriteFile(conf, []byte(text), 0o644))
	t.Setenv("KRB5_CONFIG", conf)
	o := Options{URL: "hdfs://127.0.0.1:1/", Principal: "me/_HOST", Keytab: filepath.Join(dir, "keytab"),
		ConfigDir: configure(t, map[string]string{"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST"})}
	writeKeytab(t, o.Keytab)
	return o
}

func writeKeytab(t *testing.T, path string) {
	t.Helper()
	host, err := os.Hostname()
	expect.NoError(t, err)
	keys := keytab.New()
	expect.NoError(t, keys.AddEntry("me/"+host, "REALM", "secret", time.Now(), 1, etypeID.AES128_CTS_HMAC_SHA1_96))
	b, err := keys.Marshal()
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(path, b, 0o600))
}

// A silent KDC does not block callers whose context ends.
func TestSilentKDC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer ln.Close()
	s, err := New(realm(t, ln.Addr().String()))
	expect.NoError(t, err)
	for what, ask := range map[string]func(context.Context) error{
		"one who asks, and one who waits to ask": func(ctx context.Context) error { _, err := source.Databases(ctx, s); return err },
		"another": func(ctx context.Context) error {
			_, err := s.Open(ctx, "db", "1", source.File{Name: "x"}, source.ReadOptions{})
			return err
		},
	} {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		expect.Error(t, what, ask(ctx), context.DeadlineExceeded)
		took(t, start, 100*time.Millisecond, 2*time.Second)
		cancel()
	}
	s.kerberos.close() // waits until the library has given up
}

// What is wrong with a configuration is said, and is nothing about the data.
func TestKerberosFiles(t *testing.T) {
	for what, spoil := range map[string]func(o *Options){
		"no such file or directory": func(o *Options) { o.Keytab += "x" },
		"krb5.conf":                 func(*Options) { t.Setenv("KRB5_CONFIG", os.Getenv("KRB5_CONFIG")+"x") },
		"keytab":                    func(o *Options) { _ = os.WriteFile(o.Keytab, []byte("no keytab at all"), 0o600) },
		"the credential cache /dev/null": func(o *Options) {
			t.Setenv("KRB5CCNAME", "/dev/null")
			o.Principal, o.Keytab = "", ""
		},
		"me/_HOST with the keytab":     func(o *Options) { _ = os.Truncate(o.Keytab, 20) },
		"communication error with KDC": func(*Options) {},
	} {
		o := realm(t, "127.0.0.1:1")
		o.RetryFor = 200 * time.Millisecond
		spoil(&o)
		s, err := New(o)
		expect.NoError(t, err)
		_, err = source.Databases(t.Context(), s)
		wantError(t, err, nil, what, "list hdfs://127.0.0.1:1", "Kerberos")
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is taken as there being no data", err)
		}
		s.kerberos.close()
	}
}

// close stops what would go on in the background, after a pending request to the KDC.
func (k *kerberos) close() {
	k.asking <- struct{}{}
	defer func() { <-k.asking }()
	k.mu.Lock()
	l := k.login
	k.mu.Unlock()
	k.drop(l)
}
