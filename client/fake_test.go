package client_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sequins/client"
	"sequins/test/expect"
)

// fake is a node that follows the protocol, and can be told to misbehave.
type fake struct {
	addr string

	mu        sync.Mutex
	version   string
	records   map[string]string
	partition string // the rest of the map, from "partitioner" on; "" for no map
	requests  []*http.Request
	// instead answers in place of the node, and reports whether it has.
	instead func(w http.ResponseWriter, r *http.Request) bool
}

// startFake starts a fake of one version of "db".
func startFake(t testing.TB, version string, records map[string]string) *fake {
	t.Helper()
	f := &fake{version: version, records: maps.Clone(records)}
	s := httptest.NewUnstartedServer(f)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetReadBuffer(64 << 10) // what lies in the kernel is silence to the client
		return ctx
	}
	s.Start()
	t.Cleanup(s.Close)
	f.addr = s.Listener.Addr().String()
	return f
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	instead := f.instead
	f.mu.Unlock()
	if instead != nil && instead(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	db, key, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	switch key, err := url.PathUnescape(key); {
	case err != nil || db != "db":
		http.Error(w, "no such db", http.StatusNotFound)
	case r.URL.RawQuery == "partitions":
		f.serveMap(w)
	case f.version < r.Header.Get("X-Sequins-At-Least"):
		w.Header().Set("X-Sequins-Version", f.version)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "behind", http.StatusServiceUnavailable)
	case r.Method == http.MethodPost:
		f.serveBatch(w, r)
	default:
		f.serveKey(w, key)
	}
}

func (f *fake) serveMap(w http.ResponseWriter) {
	if f.partition == "" {
		http.Error(w, "no map", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, `{"db":"db","version":%q,%s}`, f.version, f.partition)
}

func (f *fake) serveKey(w http.ResponseWriter, key string) {
	w.Header().Set("X-Sequins-Version", f.version)
	value, ok := f.records[key]
	if !ok {
		http.Error(w, "no such key", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(value)))
	io.WriteString(w, value) //nolint:errcheck // the client may have gone
}

func (f *fake) serveBatch(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var b []byte
	for len(body) > 0 {
		n := binary.BigEndian.Uint32(body)
		value, ok := f.records[string(body[4:4+n])]
		body = body[4+n:]
		if ok {
			b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
			b = append(b, value...)
		} else {
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
		}
	}
	w.Header().Set("X-Sequins-Version", f.version)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(b) //nolint:errcheck // the client may have gone
}

// misbehave sets what answers in place of the node; nil ends that.
func (f *fake) misbehave(instead func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead = instead
}

// hang waits until the client closes the connection.
func hang(_ http.ResponseWriter, r *http.Request) bool {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // the server notices the end only after the body
	<-r.Context().Done()
	return true
}

// say sets the map, in which every partition is on the same nodes.
func (f *fake) say(partitions int, nodes ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, indexes := make([]string, partitions), make([]string, len(nodes))
	for i := range nodes {
		indexes[i] = strconv.Itoa(i)
	}
	for p := range all {
		all[p] = "[" + strings.Join(indexes, ",") + "]"
	}
	f.partition = fmt.Sprintf(`"partitioner":"string","partitions":%d,"scheme":"http","nodes":["%s"],"replicas":[%s]`,
		partitions, strings.Join(nodes, `","`), strings.Join(all, ","))
}

// asked returns how often a path was requested.
func (f *fake) asked(path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.URL.RequestURI() == path {
			n++
		}
	}
	return n
}

// upgrade replaces the version and its records.
func (f *fake) upgrade(version string, records map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.records = version, maps.Clone(records)
}

// newClient returns a client of nodes, which is closed at the end.
func newClient(t testing.TB, o client.Options, nodes ...*fake) *client.Client {
	t.Helper()
	for _, f := range nodes {
		o.Addrs = append(o.Addrs, f.addr)
	}
	c, err := client.New(o)
	expect.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// sortedKeys returns the keys of a map as bytes.
func sortedKeys(records map[string]string) (keys [][]byte) {
	for _, key := range slices.Sorted(maps.Keys(records)) {
		keys = append(keys, []byte(key))
	}
	return keys
}
