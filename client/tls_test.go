package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"sequins/client"
	"sequins/test/expect"
)

// startSecure starts a fake behind TLS, and returns a configuration that trusts it.
func startSecure(t *testing.T, f *fake) *tls.Config {
	t.Helper()
	s := httptest.NewTLSServer(f)
	t.Cleanup(s.Close)
	f.addr = s.Listener.Addr().String()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{RootCAs: roots}
}

// Over https, certificates are verified, and the token stays on https whatever the map says.
func TestTLS(t *testing.T) {
	f := &fake{version: "v1", records: odd}
	trusting := startSecure(t, f)
	plain := startFake(t, "v1", odd)
	f.partition = fmt.Sprintf(`"partitioner":"string","partitions":1,"scheme":"http","nodes":[%q],"replicas":[[0]]`, plain.addr)
	c := newClient(t, client.Options{TLS: trusting, Token: "secret"}, f)
	for range 50 {
		v, err := c.Get(t.Context(), "db", []byte("apple"))
		if err != nil || string(v.Data) != "a fruit" {
			t.Fatalf("%q, %v", v.Data, err)
		}
	}
	expect.Eventually(t, "the map was requested", func() bool { return f.asked("/db/?partitions") > 0 })
	if n := len(plain.requests); n > 0 {
		t.Errorf("%d requests over http", n)
	}
	c2, err := client.New(client.Options{Addrs: []string{"https://" + f.addr}})
	expect.NoError(t, err)
	defer c2.Close()
	var unknown *tls.CertificateVerificationError
	if _, err = c2.Get(t.Context(), "db", []byte("apple")); !errors.As(err, &unknown) && !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// The answer of a node of the map that denies the token, or does not know the db, is not believed, and that of a
// configured address is.
func TestStrangersInTheMap(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden} {
		good, stranger := startFake(t, "v1", odd), startFake(t, "v1", odd)
		good.say(1, stranger.addr)
		c := newClient(t, client.Options{}, good)
		learnMap(t, c, stranger)
		deny := func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no", status)
			return true
		}
		stranger.misbehave(deny)
		if v, err := c.Get(t.Context(), "db", []byte("apple")); err != nil || string(v.Data) != "a fruit" {
			t.Errorf("%d: %q, %v", status, v.Data, err)
		}
		good.misbehave(deny)
		want := client.ErrDenied
		if status == http.StatusNotFound {
			want = client.ErrNoDB
		}
		_, err := c.Get(t.Context(), "db", []byte("apple"))
		expect.Error(t, http.StatusText(status), err, want)
	}
}
