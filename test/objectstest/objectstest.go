// Package objectstest is what sources in object stores must survive, as tests that each of them runs against a real server or an
// emulator of its store, with toxiproxy between them. Package sourcetest has what all sources must do.
package objectstest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"sequins/source"
	"sequins/source/objects"
	"sequins/test/expect"
	"sequins/test/gateway"
)

// Server is a running server with an empty bucket.
type Server interface {
	// Endpoint returns the URL of the server.
	Endpoint() string
	// Put writes an object.
	Put(t testing.TB, key string, data []byte)
	// Remove removes an object.
	Remove(t testing.TB, key string)
	// Freeze stops the process: connections stay open, and nothing answers.
	Freeze(t testing.TB)
	// Kill kills it.
	Kill()
}

// Options are those of a source that tests vary.
type Options struct {
	Endpoint, Bucket, Prefix string
	objects.Options
}

// Store makes servers and sources of one kind.
type Store struct {
	// Bucket is the bucket of servers, and URL how the URL of a bucket and a key begins, with %s for the bucket.
	Bucket, URL string
	// Shared is a server for the tests that do not stop theirs. Each uses a directory of its own.
	Shared Server
	// Start runs a server until the test ends.
	Start func(t testing.TB) Server
	// Page is the number of keys on a page of a listing; 0 if the server does not divide listings of some thousands of keys.
	Page int
	// Redirects reports whether clients of the store follow redirects, as S3 uses them for buckets in other regions.
	Redirects bool
	// Open returns a source.
	Open func(o Options) (source.Source, error)

	root string // the test's directory in the bucket
}

// Run runs the tests.
func Run(t *testing.T, s Store) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"Many", testMany},
		{"NotThere", testNotThere},
		{"ChangedWhileReading", testChangedWhileReading},
		{"Ends", testEnds},
		{"Faults", testFaults},
		{"CutListing", testCutListing},
		{"Silence", testSilence},
		{"ServerGone", testServerGone},
		{"CancelInSilence", testCancelInSilence},
		{"TemporaryAnswers", testTemporaryAnswers},
		{"LastingAnswers", testLastingAnswers},
		{"AlienAnswers", testAlienAnswers},
		{"CutPages", testCutPages},
		{"Redirects", testRedirects},
	} {
		own := s
		own.root = fmt.Sprintf("objects/%s-%d", strings.ToLower(tt.name), rand.Uint32()) // the server may be shared by -count 2
		t.Run(tt.name, func(t *testing.T) { tt.run(t, own) })
	}
}

// directory is the directory of a test on a server.
type directory struct {
	Server
	root string
}

func (d directory) Put(t testing.TB, key string, data []byte) {
	t.Helper()
	d.Server.Put(t, d.root+"/"+key, data)
}

func (d directory) Remove(t testing.TB, key string) {
	t.Helper()
	d.Server.Remove(t, d.root+"/"+key)
}

// shared returns the shared server.
func (s Store) shared() Server { return directory{s.Shared, s.root} }

// start returns a server that the test may stop.
func (s Store) start(t testing.TB) Server { return directory{s.Start(t), s.root} }

// options are for a prefix of the test's directory.
func (s Store) options(endpoint, prefix string) Options {
	return Options{Endpoint: endpoint, Bucket: s.Bucket, Prefix: path.Join(s.root, prefix)}
}

// open makes a source.
func (s Store) open(t testing.TB, o Options) source.Source {
	t.Helper()
	src, err := s.Open(o)
	expect.NoError(t, err)
	return src
}

// url returns the URL of a key of the test's directory in a bucket.
func (s Store) url(bucket, key string) string {
	return strings.Replace(s.URL, "%s", bucket, 1) + s.root + "/" + key
}

// proxy runs a proxy before a server, and returns it with the endpoint that leads through it.
func proxy(t testing.TB, server Server) (*gateway.Proxy, string) {
	t.Helper()
	u, err := url.Parse(server.Endpoint())
	expect.NoError(t, err)
	p := gateway.NewProxy(t, u.Host)
	u.Host = p.Addr
	return p, u.String()
}

// faulty is a proxy before the shared server, and the options for it.
func (s Store) faulty(t *testing.T) (p *gateway.Proxy, o Options) {
	t.Helper()
	p, endpoint := proxy(t, s.shared())
	o = s.options(endpoint, "")
	o.Timeout = 2 * time.Second // toxiproxy hangs when a client gives up while a toxic is added
	return p, o
}

// putAll writes many objects with the same content, several concurrently.
func putAll(t testing.TB, s Server, keys []string, data []byte) {
	t.Helper()
	var writers errgroup.Group
	writers.SetLimit(8)
	for _, key := range keys {
		writers.Go(func() error { s.Put(t, key, data); return nil })
	}
	_ = writers.Wait() // none fails
}

// readAll reads db/1/file and fails the test if it is not want.
func readAll(ctx context.Context, t testing.TB, src source.Source, want []byte) {
	t.Helper()
	f, err := src.Open(ctx, "db", "1", source.File{Name: "file"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	got, err := io.ReadAll(f)
	expect.NoError(t, err)
	if string(got) != string(want) {
		t.Fatalf("read %d bytes, which are not the %d written", len(got), len(want))
	}
}

// noLeaks fails the test if goroutines started after this call are left at its
// end, other than those of idle connections.
func noLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	})
}

// within fails the test if f takes longer than limit.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, more than %v", what, took, limit)
	}
}
