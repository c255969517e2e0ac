package transfer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/store"
	"sequins/test/contents"
	"sequins/test/expect"
)

// serves returns Options of a node that serves contents.
func serves(dbs map[string]content.Content) transfer.Options {
	return transfer.Options{Serving: func() map[string]content.Content { return dbs }}
}

// Nodes answer with what they serve of all dbs. Nodes that answer with something else, or do not answer in time, are left out.
func TestServing(t *testing.T) {
	dbs := map[string]content.Content{"db": contents.Of("1"), "a/b \n": contents.Of("2026-01-31")}
	a, b := newNode(t, serves(dbs), nil), newNode(t, transfer.Options{}, nil)
	listed := func(body string) string {
		return fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.serving+json"}, body: []byte(body)})
	}
	data, err := json.Marshal(contents.Of("1"))
	expect.NoError(t, err)
	entry := string(data)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, silent.Close()) })
	slow := fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.serving+json"}, body: []byte(`{"db":`), length: 1000,
		then: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	hostile := []string{
		silent.Addr().String(), slow, "127.0.0.1:1", listed(""), listed("[]"), listed(`{"db":{}}`), listed(`{"db":1}`), listed(`{"db":` + entry),
		listed(`{"db":` + strings.Replace(entry, `"1"`, `"a/b"`, 1) + `}`), listed(`{"db":{"name":"1","input":"0123"}}`),
		listed(`{"db":` + entry + `}` + strings.Repeat(" ", 9<<20)), listed(`{"x":[` + strings.Repeat("{},", 1<<17) + `{}],"db":` + entry + `}`),
		fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/json"}, body: []byte(`{"db":` + entry + `}`)}),
		fake(t, answer{code: 404, header: map[string]string{"Content-Type": "application/vnd.sequins.serving+json"}, body: []byte(`{"db":` + entry + `}`)}),
	}
	good := listed(`{"db":` + entry + `}`)
	taker := newNode(t, transfer.Options{}, nil)
	all, hangs := taker.Serving(t.Context(), append(hostile, a.addr, b.addr, good))
	if addrs := slices.Sorted(maps.Keys(all)); !slices.Equal(addrs, slices.Sorted(slices.Values([]string{a.addr, b.addr, good}))) {
		t.Errorf("answers of %q", addrs)
	}
	if _, closed := taker.Serving(t.Context(), []string{a.addr, "127.0.0.1:1"}); !hangs || closed {
		t.Errorf("some hang: %v, and of others: %v", hangs, closed)
	}
	if !maps.Equal(all[a.addr], dbs) || len(all[b.addr]) != 0 || all[good]["db"] != contents.Of("1") {
		t.Errorf("%v", all)
	}
	if !strings.Contains(taker.log.String(), silent.Addr().String()) {
		t.Error("no line of the log names a node that does not answer")
	}
}

// The greatest name that is served counts, and of its contents the one that most nodes serve.
func TestLatest(t *testing.T) {
	old, first, second := contents.Of("1"), contents.Of("2", "first"), contents.Of("2", "second")
	serving := func(all ...content.Content) map[string]map[string]content.Content {
		m := make(map[string]map[string]content.Content)
		for i, c := range all {
			m[fmt.Sprint(i)] = map[string]content.Content{"db": c, "other": contents.Of("9")}
		}
		return m
	}
	greater := first
	if second.Code() > first.Code() {
		greater = second
	}
	for _, test := range []struct {
		serving []content.Content
		want    content.Content
	}{
		{nil, content.Content{}},
		{[]content.Content{old, old, first}, old},
		{[]content.Content{old, first}, old},
		{[]content.Content{old, first, first}, first},
		{[]content.Content{old, first, second, first}, first},
		{[]content.Content{second, first, second}, second},
		{[]content.Content{first, second, first}, first},
	} {
		if c := transfer.Latest(serving(test.serving...), "db"); c != test.want {
			t.Errorf("%v: %v, want %v", test.serving, c, test.want)
		}
	}
	if c := transfer.Latest(serving(first, second), "db"); c != greater {
		t.Errorf("of two nodes with a content each: %v, want %v", c, greater)
	}
	if c := transfer.Latest(serving(first), "nothing"); c != (content.Content{}) {
		t.Errorf("of a db that none serves: %v", c)
	}
}

// The manifest of a content comes from the first node that gives it, and none is taken that is of another content.
func TestManifest(t *testing.T) {
	c := manifest.Content()
	giver, taker := newNode(t, transfer.Options{}, nil), newNode(t, transfer.Options{}, nil)
	wrong := func(change func(m *store.Manifest)) string {
		m := manifest
		m.DB = "db"
		change(&m)
		data, err := m.MarshalJSON()
		expect.NoError(t, err)
		return fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.manifest+json", wire.Content: c.Code()},
			body: data})
	}
	bad := map[string]string{
		"another db":         wrong(func(m *store.Manifest) { m.DB = "other" }),
		"another name":       wrong(func(m *store.Manifest) { m.Version = "2" }),
		"another input":      wrong(func(m *store.Manifest) { m.Input = contents.In("1", "other files").Hash }),
		"another division":   wrong(func(m *store.Manifest) { m.Partitions = 4 }),
		"nothing":            "127.0.0.1:1",
		"another media type": fake(t, answer{code: 200, body: []byte("{}")}),
	}
	for name, addr := range bad {
		if m, err := taker.Manifest(t.Context(), []string{addr}, "db", c); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	hangs := fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.manifest+json", wire.Content: c.Code()}, length: 1000,
		then: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	addrs := append(slices.Collect(maps.Values(bad)), hangs, giver.addr)
	m, err := taker.Manifest(t.Context(), addrs, "db", c)
	if err != nil || m.Content() != c || m.DB != "db" || len(m.Files) != 1 || time.Since(m.Created) > time.Hour {
		t.Errorf("%+v, %v", m, err)
	}
	for _, other := range []content.Content{contents.Of("1", "other files"), contents.Of("2")} {
		if m, err := taker.Manifest(t.Context(), []string{giver.addr}, "db", other); !errors.Is(err, transfer.ErrElsewhere) {
			t.Errorf("of %v: %+v, %v", other, m, err)
		}
	}
	empty := contents.Of("1")
	if _, err := taker.Manifest(t.Context(), nil, "db", empty); err == nil {
		t.Error("no node, and a manifest")
	}
}

// Requests that do not name a content are refused.
func TestContentOfRequests(t *testing.T) {
	n := newNode(t, transfer.Options{}, map[int][]byte{1: block(t, 1, partitions, 1, 100)})
	c := manifest.Content()
	for code, want := range map[string]int{c.Code(): 200, "": 400, "x": 400, c.Hash: 400, c.Code() + "0": 400, contents.Of("1", "other files").Code(): 404} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+n.addr+"/db?block=1&proxy=1", nil)
		expect.NoError(t, err)
		req.Header.Set(wire.Content, code)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		expect.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != want || want == 200 && resp.Header.Get(wire.Content) != code {
			t.Errorf("%q: %d %q, want %d", code, resp.StatusCode, resp.Header, want)
		}
	}
}
