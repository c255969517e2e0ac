package server

import (
	"net/http"
	"testing"

	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/proxy"
	"sequins/test/contents"
	"sequins/test/versions"
	"sequins/version"
)

// holding is a catalogue with a version.
func holding(t *testing.T, c content.Content) *catalog {
	t.Helper()
	info := version.Info{DB: "db", Content: c, Partitions: 1, LastModified: modified, Following: version.Solo{}}
	set := version.NewSet("db")
	versions.Activate(t, set, versionWith(t, info, map[string]string{"k": "value"}))
	return &catalog{sets: map[string]*version.Set{"db": set}}
}

// A node that holds one content of a version does not answer a peer that asks for another one.
func TestPeerOfAnotherContent(t *testing.T) {
	ours, other := contents.Of("v1"), contents.Of("v1", "other files")
	s := start(t, holding(t, ours), testOptions{})
	for header, status := range map[string]int{
		"X-Sequins-Content: " + ours.Code():                      200,
		"x-sequins-content: " + ours.Code():                      200,
		"X-Sequins-Content: " + other.Code():                     501,
		"x-sequins-content: " + other.Code():                     501,
		"X-Sequins-Content: " + ours.Hash + "." + other.Division: 501,
		"X-Sequins-Content: " + ours.Hash:                        501,
		"X-Sequins-Content: x":                                   501,
		"X-Sequins-Content:":                                     200,
		"X-Sequins-Other: " + other.Code():                       200, // as upstream's nodes ask
	} {
		for _, general := range []string{"X: y", "Range: bytes=0-"} { // answered by net/http's rules
			got := s.get(t, "/db/k?proxy=v1", header, general)
			if got.status == 206 {
				got.status = 200
			}
			if got.status != status {
				t.Errorf("%s, %s: %+v", header, general, got)
			}
			if code := got.header.Get(wire.Content); status == 200 && code != ours.Code() {
				t.Errorf("%s, %s: the answer is from %q", header, general, code)
			}
		}
		if got := s.get(t, "/db/k", header); got.status != 200 || got.body != "value" || got.header.Get(wire.Content) != "" {
			t.Errorf("%s: a client gets %+v", header, got)
		}
	}
}

// Requests to peers name the content that the node has.
func TestContentIsAskedFor(t *testing.T) {
	mine := contents.Of("v1")
	for theirs, status := range map[content.Content]int{mine: 200, contents.Of("v1", "other files"): 502} {
		holder := start(t, holding(t, theirs), testOptions{})
		set := version.NewSet("db")
		versions.Activate(t, set, version.New(version.Info{DB: "db", Content: mine, Partitions: 1, Following: peersOnly{peers: []string{holder.addr}}}))
		p := newProxy(proxy.Options{Timeout: patience})
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: p})
		t.Cleanup(p.Close)
		for _, general := range []string{"X: y", "If-Match: *", "X-Sequins-Content: " + theirs.Code()} {
			if got := s.get(t, "/db/k", general); got.status != status {
				t.Errorf("%v, %s: %+v", theirs, general, got)
			}
		}
	}
}

// Nodes of the cluster, and nobody else, get what this node serves.
func TestServing(t *testing.T) {
	serving := func(w http.ResponseWriter) { w.Write([]byte("serving")) }
	for _, test := range []struct {
		serving func(http.ResponseWriter)
		secret  string
		headers []string
		status  int
	}{
		{serving, "", nil, 200},
		{serving, "s", nil, 403},
		{serving, "s", []string{"X-Sequins-Cluster: s"}, 200},
	} {
		s := start(t, &catalog{}, testOptions{PeerSecret: test.secret})
		s.opts.Serving = test.serving
		if got := s.get(t, "/?proxy=serving", test.headers...); got.status != test.status || (got.body == "serving") != (test.status == 200) {
			t.Errorf("%v: %+v, want %d", test.headers, got, test.status)
		}
	}
}
