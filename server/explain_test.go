package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/versions"
	"sequins/version"
)

// explainOf asks for an explanation, and checks what all of them have.
func explainOf(t *testing.T, s *running, target string) reads.Explanation {
	t.Helper()
	got := s.get(t, target)
	if got.status != 200 || got.header.Get("Content-Type") != "application/json" || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %+v", target, got)
	}
	var e reads.Explanation
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatalf("%s: %v in %s", target, err, got.body)
	}
	m := e.Microseconds
	if sum := m.Lookup + m.Peers; (m.Total <= 0) != (e.Partitions == 0) || e.Partitions > 0 && sum > m.Total+0.5 || m.Lookup < 0 {
		t.Errorf("%s: the times of the steps: %+v", target, m)
	}
	return e
}

var untimed = cmpopts.IgnoreFields(reads.Explanation{}, "Microseconds")

func TestExplainLocal(t *testing.T) {
	const secret = "what nobody may read"
	records := map[string]string{"k": secret, "large": noise(1, 1<<20), "\xff": secret}
	c := catalogOf(t, records)
	c.state.Node = "localhost"
	s := start(t, c, testOptions{})
	tag := func(target string) string { return s.get(t, target).header.Get("Etag") }
	here := reads.Explanation{DB: "db", Version: "v1", Partitioner: "string", Partitions: 2, Replicas: []string{"localhost"}, AnsweredBy: "local"}
	key := func(key string, found bool, size int64, etag string) reads.Explanation {
		e := here
		e.Key, e.Hash, e.Partition = key, shard.String.Hash([]byte(key)), shard.String.Partition([]byte(key), 2)
		e.Found, e.Size, e.ETag, e.Status = found, size, etag, 200
		if !found {
			e.Status, e.Error = 404, "no such key"
		}
		return e
	}
	binary := key("\xff", true, int64(len(secret)), tag("/db/%ff"))
	binary.Key, binary.KeyBase64 = "", "/w=="
	for target, want := range map[string]reads.Explanation{
		"/db/k?explain":               key("k", true, int64(len(secret)), tag("/db/k")),
		"/db/k?a=b&explain=1&c":       key("k", true, int64(len(secret)), tag("/db/k")),
		"/db/k?explain&proxy=v1":      key("k", true, int64(len(secret)), tag("/db/k")),
		"/db/large?explain":           key("large", true, 1<<20, tag("/db/large")),
		"/db/absent?explain":          key("absent", false, 0, ""),
		"/db/%22%3Cscript%3E?explain": key(`"<script>`, false, 0, ""),
		"/db/%ff?explain":             binary,
	} {
		got := explainOf(t, s, target)
		if diff := cmp.Diff(want, got, untimed); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
		if body := s.get(t, target).body; strings.Contains(body, secret) {
			t.Errorf("%s shows the value: %s", target, body)
		}
	}
}

// Requests that are not lookups are answered as without explain, and similar parameters are
// ignored.
func TestExplainIsNotForAll(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	for target, want := range map[string]string{
		"/nodb/k?explain": "404 no such db\n", "/db/k?explain&proxy=v0": "501 the db or the version is not here\n",
		"/db/k?explained": "200 value", "/db/k?x=explain": "200 value", "/db/k?Explain": "200 value",
	} {
		got := s.get(t, target)
		if line := http.StatusText(got.status); got.body != want[4:] || want[:3] != map[int]string{200: "200", 404: "404", 501: "501"}[got.status] {
			t.Errorf("%s: %s %q, want %q", target, line, got.body, want)
		}
	}
	if got := s.do(t, "HEAD", "/db/k?explain"); got.status != 200 || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
}

// For a key on another node, only the header of its value is requested.
func TestExplainElsewhere(t *testing.T) {
	records := map[string]string{"k": "value", "large": noise(3, 3<<20)}
	m := metrics.New()
	holder := start(t, catalogOf(t, records), testOptions{Metrics: m.Server})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	for key, size := range map[string]int64{"k": 5, "large": 3 << 20, "absent": 0} {
		got := explainOf(t, asker, "/db/"+key+"?explain")
		if got.AnsweredBy != holder.addr || got.Found != (size > 0) || got.Size != size || got.Microseconds.Peers <= 0 {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([]string{holder.addr}, got.Replicas); diff != "" {
			t.Error(diff)
		}
		if got.Found && got.ETag != holder.get(t, "/db/"+key).header.Get("Etag") {
			t.Errorf("%s: ETag %s", key, got.ETag)
		}
	}
	asker = startAsker(t, proxy.Options{Timeout: patience}, "127.0.0.1:1")
	got := explainOf(t, asker, "/db/k?explain")
	if got.Status != 502 || got.AnsweredBy != "" || got.Found || !strings.Contains(got.Error, "no node that can be reached") {
		t.Errorf("%+v", got)
	}
	if got := explainOf(t, asker, "/db/k?explain&proxy=v1"); got.Status != 501 {
		t.Errorf("a proxied one: %+v", got)
	}
}

// A version without files has no partitions to look into.
func TestExplainEmpty(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 0, nil))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	want := reads.Explanation{DB: "db", Key: "k", Version: "v1", Partitioner: "string", Replicas: []string{}, Status: 404, Error: "no such key"}
	if diff := cmp.Diff(want, explainOf(t, s, "/db/k?explain"), untimed); diff != "" {
		t.Error(diff)
	}
}

// Explanations are no requests for keys: they do not spoil the latencies.
func TestExplainIsCountedApart(t *testing.T) {
	m := metrics.New()
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{Metrics: m.Server})
	s.get(t, "/db/k?explain")
	body := scrapeText(t, m)
	if !strings.Contains(body, `sequins_requests_total{code="200",db="",route="status"} 1`+"\n") || strings.Contains(body, `route="key"} 1`) {
		t.Error(body)
	}
}

// Conditions and ranges apply to the value and not to its explanation, on the node that holds the value and on others.
func TestExplainUnderConditions(t *testing.T) {
	holder := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	for _, s := range []*running{holder, asker} {
		want := explainOf(t, s, "/db/k?explain")
		for _, field := range []string{"If-None-Match: " + etagOf("value"), "If-None-Match: *", `If-Match: "x"`, "Range: bytes=1-2", "Range: bytes=100-", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"} {
			got := s.get(t, "/db/k?explain", field)
			var e reads.Explanation
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != 200 {
				t.Errorf("%s: %+v, %v", field, got, err)
			} else if diff := cmp.Diff(want, e, untimed); diff != "" {
				t.Errorf("%s (-without +with):\n%s", field, diff)
			}
		}
	}
}
