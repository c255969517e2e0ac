package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/shard"
	"sequins/store"
	"sequins/test/blocktest"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/version"
)

// partitions is how many partitions the content of these tests has, and manifest its plan.
const partitions = 3

var manifest = store.Manifest{Version: "1", Input: contents.In("1").Hash, Format: "sequencefile", Partitions: partitions, Partitioner: "string", Aligned: true,
	Files: []store.ManifestFile{{Name: "part-00000", Size: 5}}}

// block returns a block of partition p with the records of its keys, or of those of another partition.
func block(t testing.TB, p, of, keysOf, records int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := blocks.NewWriter(&b, blocks.WriterOptions{Partition: p, Partitions: of})
	expect.NoError(t, err)
	for i := range records {
		key := fmt.Appendf(nil, "key-%06d", i)
		if shard.String.Partition(key, of) == keysOf {
			expect.NoError(t, w.Add(key, bytes.Repeat(key, 20)))
		}
	}
	_, err = w.Finish()
	expect.NoError(t, err)
	return b.Bytes()
}

// A node has one version with blocks, in a set.
type node struct {
	*transfer.Transfer
	set   *version.Set
	store *store.Store
	dir   *store.Dir
	addr  string
	log   *expect.Output
}

// room is of a disk that has room for every block.
func room(int64) error { return nil }

// newNode returns a node with some blocks, by partition.
func newNode(t testing.TB, o transfer.Options, held map[int][]byte) *node {
	t.Helper()
	s, err := store.Open(t.TempDir())
	expect.NoError(t, err)
	dir, err := s.Create("db", manifest)
	expect.NoError(t, err)
	n := &node{set: version.NewSet("db"), store: s, dir: dir, log: &expect.Output{}}
	v := version.New(version.Info{DB: "db", Content: manifest.Content(), Partitions: partitions, Partitioner: shard.String, Following: version.Solo{}})
	for p, data := range held {
		expect.NoError(t, os.WriteFile(dir.BlockPath(p), data, 0o644))
		r, err := blocks.Open(dir.BlockPath(p))
		expect.NoError(t, err)
		expect.NoError(t, v.Put(p, r))
	}
	n.set.Prepare(v)
	o.Set = func(db []byte) *version.Set {
		if string(db) != "db" {
			return nil
		}
		return n.set
	}
	if o.Serving == nil {
		o.Serving = func() map[string]content.Content { return map[string]content.Content{} }
	}
	if o.Fits == nil {
		o.Fits = room
	}
	o.Store = s
	o.Logger = n.log.Logger()
	o.Nodes = wire.NewClient(nil, "")
	n.Transfer = transfer.New(o)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			n.AnswerServing(w)
			return
		}
		code, text := n.Serve(w, r, strings.Trim(r.URL.Path, "/"), r.URL.RawQuery)
		switch code {
		case 0:
			panic(http.ErrAbortHandler)
		case http.StatusOK:
		default:
			http.Error(w, text, code)
		}
	}))
	n.addr = strings.TrimPrefix(srv.URL, "http://")
	t.Cleanup(func() {
		n.Close()
		srv.Close()
		expect.NoError(t, n.set.Remove(manifest.Content().Input).Close(context.Background()))
		expect.NoError(t, s.Close())
	})
	return n
}

// fetch copies a partition of the test's content from a node.
func (n *node) fetch(t testing.TB, addr string, p int) error {
	return n.Fetch(t.Context(), addr, n.dir, p, shard.String)
}

// published returns the files of a node's version.
func (n *node) files(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(n.dir.BlockPath(0)))
	expect.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "MANIFEST.json" {
			names = append(names, e.Name())
		}
	}
	return names
}

// A node gives the blocks that it has.
func TestGiveAndTake(t *testing.T) {
	m := metrics.New()
	data := block(t, 1, partitions, 1, 40000)
	giver, taker := newNode(t, transfer.Options{}, map[int][]byte{1: data}), newNode(t, transfer.Options{Metrics: m.Transfer}, nil)
	expect.NoError(t, taker.fetch(t, giver.addr, 1))
	got, err := os.ReadFile(taker.dir.BlockPath(1))
	expect.NoError(t, err)
	if !bytes.Equal(got, data) || !slices.Equal(taker.files(t), []string{"00001.block"}) {
		t.Errorf("%d bytes of %d; %q", len(got), len(data), taker.files(t))
	}
	if err := taker.fetch(t, giver.addr, 0); !errors.Is(err, transfer.ErrElsewhere) {
		t.Error(err)
	}
}

// A block that does not fit is refused, and nothing is written: that its length is true is not known.
func TestNoRoom(t *testing.T) {
	var asked int64
	full := errors.New("no room")
	giver := newNode(t, transfer.Options{}, map[int][]byte{1: block(t, 1, partitions, 1, 100)})
	taker := newNode(t, transfer.Options{Fits: func(bytes int64) error { asked = bytes; return full }}, nil)
	err := taker.fetch(t, giver.addr, 1)
	if !errors.Is(err, transfer.ErrRefused) || !errors.Is(err, full) || errors.Is(err, transfer.ErrDisk) {
		t.Error(err)
	}
	if want := int64(len(block(t, 1, partitions, 1, 100))); asked != want || len(taker.files(t)) != 0 {
		t.Errorf("asked for %d bytes of %d, and has %q", asked, want, taker.files(t))
	}
}

// Blocks of files that were replaced by others of the same sizes are not copied.
func TestReplacedFiles(t *testing.T) {
	giver, taker := newNode(t, transfer.Options{}, map[int][]byte{1: block(t, 1, partitions, 1, 100)}), newNode(t, transfer.Options{}, nil)
	m := manifest
	m.Input, m.Files = contents.In("1", "another").Hash, []store.ManifestFile{{Name: "part-00000", Size: 5, Mark: "another"}}
	dir, err := taker.store.Create("db", m)
	expect.NoError(t, err)
	if err := taker.Fetch(t.Context(), giver.addr, dir, 1, shard.String); !errors.Is(err, transfer.ErrElsewhere) {
		t.Error(err)
	}
}

// An answer of a giver that is not as it should be.
type answer struct {
	code   int
	header map[string]string
	body   []byte
	length int // 0 is that of the body
	then   func(w http.ResponseWriter, r *http.Request)
}

// fake is a node that gives any answer.
func fake(t *testing.T, a answer) (addr string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		if a.length == 0 {
			a.length = len(a.body)
		}
		w.Header().Set("Content-Length", strconv.Itoa(a.length))
		w.WriteHeader(a.code)
		_, _ = w.Write(a.body)
		_ = http.NewResponseController(w).Flush()
		if a.then != nil {
			a.then(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// Whatever a node sends, only the right block is published, and nothing is left of another one.
func TestFaults(t *testing.T) {
	n := newNode(t, transfer.Options{}, nil)
	n.Expect(1<<20, 300*time.Millisecond)
	code := manifest.Content().Code()
	good := block(t, 1, partitions, 1, 3000)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/3] ^= 4
	header := map[string]string{"Content-Type": "application/vnd.sequins.block", wire.Content: code}
	other := map[string]string{"Content-Type": "application/vnd.sequins.block", wire.Content: "0123"}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	dribble := func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := w.Write([]byte{0}); err != nil || r.Context().Err() != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
	tests := map[string]struct {
		answer
		want error // nil for any
		text string
	}{
		"flipped bit":         {answer{code: 200, header: header, body: flipped}, transfer.ErrRefused, "checksum"},
		"another partition":   {answer{code: 200, header: header, body: block(t, 2, partitions, 2, 3000)}, transfer.ErrRefused, "it is partition 2 of 3"},
		"another number":      {answer{code: 200, header: header, body: block(t, 1, 4, 1, 3000)}, transfer.ErrRefused, "it is partition 1 of 4"},
		"keys of another one": {answer{code: 200, header: header, body: block(t, 1, partitions, 2, 3000)}, transfer.ErrRefused, "belongs to partition 2"},
		"another content":     {answer{code: 200, header: other, body: good}, transfer.ErrRefused, `content "0123"`},
		"no content":          {answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.block"}, body: good}, transfer.ErrRefused, `content ""`},
		"too little":          {answer{code: 200, header: header, body: good[:100], length: len(good)}, nil, "broke off after 100 of"},
		"shorter":             {answer{code: 200, header: header, body: good[:len(good)-1]}, transfer.ErrRefused, ""},
		"longer":              {answer{code: 200, header: header, body: append(bytes.Clone(good), 0)}, transfer.ErrRefused, ""},
		"nothing":             {answer{code: 200, header: header}, transfer.ErrRefused, "length"},
		"no block at all":     {answer{code: 200, header: header, body: bytes.Repeat([]byte("x"), 5000)}, transfer.ErrRefused, ""},
		"stalls":              {answer{code: 200, header: header, body: good[:100], length: len(good), then: hang}, nil, "too slow"},
		"dribbles":            {answer{code: 200, header: header, body: good[:100], length: len(good), then: dribble}, nil, "too slow"},
		"upstream's kind":     {answer{code: 200, header: map[string]string{"Content-Type": "application/json"}, body: []byte("{}")}, transfer.ErrElsewhere, ""},
		"busy":                {answer{code: 429}, transfer.ErrBusy, ""},
		"stopping":            {answer{code: 503, body: []byte("oh\n")}, nil, "oh"},
		"error":               {answer{code: 500, body: []byte("oh\n")}, nil, "500"},
	}
	for part, at := range blocktest.Sections(good) {
		body := bytes.Clone(good)
		body[at] ^= 0x10
		tests["flipped bit in the "+part] = struct {
			answer
			want error
			text string
		}{answer{code: 200, header: header, body: body}, transfer.ErrRefused, "offset"}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := n.fetch(t, fake(t, test.answer), 1)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v, want %v with %q", err, test.want, test.text)
			}
			if err != nil && strings.Contains(err.Error(), ".tmp") {
				t.Errorf("it names a file that is removed: %v", err)
			}
			if files := n.files(t); len(files) > 0 {
				t.Errorf("left: %q", files)
			}
		})
	}
	expect.NoError(t, n.fetch(t, fake(t, answer{code: 200, header: header, body: good}), 1))
}

// A node that has died is an error, and one that sends a redirect is not followed.
func TestUnreachable(t *testing.T) {
	n := newNode(t, transfer.Options{}, nil)
	if err := n.fetch(t, "127.0.0.1:1", 0); err == nil {
		t.Error("a node that is not there gives a block")
	}
	c, header := manifest.Content(), map[string]string{"Content-Type": "application/vnd.sequins.manifest+json"}
	for name, a := range map[string]answer{
		"a redirect":      {code: 302, header: map[string]string{"Location": "/elsewhere"}},
		"upstream's kind": {code: 200, header: map[string]string{"Content-Type": "application/json"}, body: []byte("{}")},
		"no content":      {code: 200, header: header, body: []byte("{}")},
	} {
		if m, err := n.Manifest(t.Context(), []string{fake(t, a)}, "db", c); !errors.Is(err, transfer.ErrElsewhere) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// No more blocks are given at a time than may be, and a taker that reads slowly is cut off.
func TestSlowTaker(t *testing.T) {
	data := block(t, 0, partitions, 0, 400000) // more than the buffers of a connection
	n := newNode(t, transfer.Options{}, map[int][]byte{0: data})
	n.Expect(64<<20, 200*time.Millisecond)
	get := func() *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+n.addr+"/db?block=0&proxy=1", nil)
		expect.NoError(t, err)
		req.Header.Set(wire.Content, manifest.Content().Code())
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		expect.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	slow := []*http.Response{get(), get()}
	if code := get().StatusCode; code != http.StatusTooManyRequests {
		t.Errorf("a third one at a time: %d", code)
	}
	expect.Eventually(t, "both takers are cut off", func() bool {
		for _, resp := range slow {
			_, _ = io.CopyN(io.Discard, resp.Body, 1<<10)
		}
		return strings.Count(n.log.String(), "was not sent completely") == 2
	})
	for _, resp := range slow {
		if got, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("all of %d bytes, the last %d at once", len(data), got)
		}
	}
	if resp := get(); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// Bandwidth limits what is given, and Close ends it.
func TestClose(t *testing.T) {
	data := block(t, 0, partitions, 0, 400000)
	n := newNode(t, transfer.Options{}, map[int][]byte{0: data})
	taker := newNode(t, transfer.Options{}, nil)
	n.SetBandwidth(1000)
	done := make(chan error, 1)
	go func() { done <- taker.fetch(t, n.addr, 0) }()
	expect.Eventually(t, "the copy has begun", func() bool { return len(taker.files(t)) > 0 })
	n.Close()
	if err := <-done; err == nil {
		t.Error("a block of a node that has closed")
	}
	if files := taker.files(t); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}

// However much a node answers, little memory is taken for it.
func TestLargeAnswers(t *testing.T) {
	taker, c := newNode(t, transfer.Options{}, nil), manifest.Content()
	const most = 67 << 20 // bytes
	for name, a := range map[string]struct{ before, element, after string }{
		"numbers":  {`{"x":[`, `0`, `]}`},
		"files":    {`{"Files":[`, `{}`, `]}`},
		"a string": {`{"version":"`, `xxxxxxx`, `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(a.before + strings.Repeat(a.element+",", most/(len(a.element)+1)) + a.element + a.after)
			addr := fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.manifest+json", wire.Content: c.Code()}, body: body})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := taker.Manifest(t.Context(), []string{addr}, "db", c)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*most {
				t.Errorf("%d MB were allocated for an answer of %d MB", took>>20, len(body)>>20)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
}
