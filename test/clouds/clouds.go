// Package clouds runs emulators of the object stores of other clouds than Amazon's for tests, as real processes:
// fake-gcs-server for Google Cloud Storage and Azurite for Azure Blob Storage. Both are installed once; Azurite
// needs Node.js.
//
// Neither is the real service. fake-gcs-server checks no credentials, does not divide listings into pages, ignores conditions
// of downloads, and takes a question for the state of an upload for its end. Azurite checks signatures, conditions and MD5s; it has no
// hierarchical namespace. Tests of what they lack use servers of their own.
package clouds

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/ports"
)

// Bucket is the bucket or container of every server.
const Bucket = "bucket"

// GCS is a running fake-gcs-server.
type GCS struct{ *gateway.Process }

// StartGCS runs a server until the test ends.
func StartGCS(t testing.TB) *GCS {
	t.Helper()
	binary, err := gateway.Build("github.com/fsouza/fake-gcs-server")
	expect.NoError(t, err)
	addr, err := ports.Free()
	expect.NoError(t, err)
	host, port, err := net.SplitHostPort(addr)
	expect.NoError(t, err)
	p, err := gateway.RunProcess(addr, binary, "-scheme", "http", "-host", host, "-port", port, "-backend", "memory",
		"-public-host", addr, "-log-level", "error", "-data", t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(p.Kill)
	g := &GCS{p}
	send(t, http.MethodPost, g.Endpoint()+"/storage/v1/b", []byte(`{"name": "`+Bucket+`"}`))
	return g
}

// Put writes an object.
func (g *GCS) Put(t testing.TB, key string, data []byte) {
	t.Helper()
	send(t, http.MethodPost, g.Endpoint()+"/upload/storage/v1/b/"+Bucket+"/o?uploadType=media&name="+url.QueryEscape(key), data)
}

// Remove removes an object.
func (g *GCS) Remove(t testing.TB, key string) {
	t.Helper()
	send(t, http.MethodDelete, g.Endpoint()+"/storage/v1/b/"+Bucket+"/o/"+url.PathEscape(key), nil)
}

func send(t testing.TB, method, target string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(body))
	expect.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	expect.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err != nil || cerr != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s: %.300s (%v, %v)", method, target, resp.Status, text, err, cerr)
	}
}
