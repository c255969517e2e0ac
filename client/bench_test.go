package client_test

import (
	"io"
	"net/http"
	"testing"

	"sequins/client"
	"sequins/test/expect"
)

// BenchmarkGet reads one key from a node in the same process; BenchmarkNetHTTP does so with net/http alone.
func BenchmarkGet(b *testing.B) {
	f := startFake(b, "v1", odd)
	f.say(16, f.addr)
	c := newClient(b, client.Options{HedgeBudget: -1}, f)
	b.ReportAllocs()
	for b.Loop() {
		_, err := c.Get(b.Context(), "db", []byte("apple"))
		expect.NoError(b, err)
	}
}

func BenchmarkNetHTTP(b *testing.B) {
	f := startFake(b, "v1", odd)
	defer http.DefaultClient.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := http.Get("http://" + f.addr + "/db/apple")
		expect.NoError(b, err)
		_, err = io.ReadAll(resp.Body)
		expect.NoError(b, err)
		resp.Body.Close()
	}
}

// BenchmarkMultiGet reads 100 keys at a time.
func BenchmarkMultiGet(b *testing.B) {
	f := startFake(b, "v1", odd)
	f.say(16, f.addr)
	c := newClient(b, client.Options{HedgeBudget: -1}, f)
	keys := make([][]byte, 100)
	for i := range keys {
		keys[i] = []byte("apple")
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := c.MultiGet(b.Context(), "db", keys)
		expect.NoError(b, err)
	}
}
