package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// A client that reads slowly gets all of one version, however many come meanwhile; the version is closed after that. One
// that leaves in the middle holds nothing.
func TestScanWhileVersionsSwitch(t *testing.T) {
	records := manyRecords(1200, 10<<10)
	set := version.NewSet("db")
	v1 := versionOf(t, "db", "v1", 3, records)
	versions.Activate(t, set, v1)
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	_, resp := startLarge(t, s, "/db?start=")
	left, gone := startLarge(t, s, "/db?start=")
	first := make([]byte, 1<<20)
	for _, r := range []io.Reader{resp.Body, gone.Body} {
		if _, err := io.ReadFull(r, first); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		versions.Activate(t, set, versionOf(t, "db", fmt.Sprintf("v2%d", i), 1, map[string]string{"key-0000000": "new"}))
	}
	set.Remove(contents.In("v1"))
	closed := make(chan struct{})
	go func() { closeVersion(t, v1); close(closed) }()
	left.Close()
	select {
	case <-closed:
		t.Error("the version was closed in the middle")
	default:
	}
	rest, err := io.ReadAll(resp.Body)
	expect.NoError(t, err)
	all, _, complete := parseLines(t, string(first)+string(rest))
	if !complete {
		t.Error("not complete")
	}
	samePairs(t, "of v1", all, wantPairs(records, "", "", ""))
	<-closed
}

// A client that stops reading in the middle of a range is cut off, and holds nothing after that.
func TestScanClientStops(t *testing.T) {
	m := metrics.New()
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 3, manyRecords(3000, 10<<10)))
	inBubble(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server}, func(_ *Server, dial func() net.Conn) {
		c := dial()
		io.WriteString(c, "GET /db?start= HTTP/1.1\r\nHost: x\r\n\r\n")
		resp := readHeader(t, c)
		defer resp.Body.Close()
		if _, err := io.ReadFull(resp.Body, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if strings.Contains(scrapeText(t, m), `route="scan"`) {
			t.Error("the client was cut off before its time")
		}
		time.Sleep(2 * time.Second)
		if text := scrapeText(t, m); !strings.Contains(text, `sequins_requests_total{code="499",db="db",route="scan"} 1`) {
			t.Errorf("the client has not been cut off: %s", text)
		}
	})
	closeVersion(t, set.Remove(contents.In("v1")))
}

// A client that reads slowly, but not too slowly for a single GET, does not delay the removal of a version for ever.
func TestScanDelaysRemoval(t *testing.T) {
	m := metrics.New()
	set := version.NewSet("db")
	v1 := versionOf(t, "db", "v1", 3, manyRecords(3000, 10<<10))
	versions.Activate(t, set, v1)
	inBubble(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server}, func(_ *Server, dial func() net.Conn) {
		c := dial()
		io.WriteString(c, "GET /db?start= HTTP/1.1\r\nHost: x\r\n\r\n")
		resp := readHeader(t, c)
		defer resp.Body.Close()
		set.Remove(contents.In("v1"))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if v1.Close(ctx) == nil {
			t.Error("the version was closed in the middle")
		}
		began, err := time.Now(), error(nil)
		for err == nil {
			_, err = io.CopyN(io.Discard, resp.Body, 32<<10)
			time.Sleep(5 * time.Second)
		}
		if took := time.Since(began); took > 3*time.Minute || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %v: %v", took, err)
		}
	})
	closeVersion(t, v1)
}

func readHeader(t testing.TB, r io.Reader) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	expect.NoError(t, err)
	return resp
}

// A client that reads slowly for longer than the timeout of a request gets all, also of what other nodes hold.
func TestScanTakesLong(t *testing.T) {
	var asked atomic.Int64
	value := noise(1, 200<<10)[:60<<10]
	const n = 200
	fetch := contextProxy(func(ctx context.Context) (*proxy.Answer, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i := asked.Add(1)
		key := fmt.Sprintf("key-%07d", i)
		body := append(binary.BigEndian.AppendUint32(nil, uint32(len(key))), key...)
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(value))), value...)
		body = append(body, 0xff, 0xff, 0xff, 0xff, 1)
		if i == n {
			body[len(body)-1] = 0
		}
		return &proxy.Answer{Peer: "p:1", Status: 200, Length: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
	})
	set := version.NewSet("db")
	versions.Activate(t, set, version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, LastModified: modified, Following: peersOnly{peers: []string{"p:1"}}}))
	inBubble(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: fetch}, func(_ *Server, dial func() net.Conn) {
		c := dial()
		io.WriteString(c, "GET /db?start= HTTP/1.1\r\nHost: x\r\nAccept: application/octet-stream\r\n\r\n")
		resp := readHeader(t, c)
		defer resp.Body.Close()
		var body bytes.Buffer
		for {
			if _, err := io.CopyN(&body, resp.Body, 200<<10); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("after %d bytes: %v", body.Len(), err)
			}
			time.Sleep(time.Second)
		}
		if all, _, complete := parseBytes(t, body.String()); len(all) != n || !complete {
			t.Errorf("%d records, complete: %v", len(all), complete)
		}
	})
}

// contextProxy is a Proxy of one function.
type contextProxy func(ctx context.Context) (*proxy.Answer, error)

func (f contextProxy) Fetch(ctx context.Context, _ *proxy.Query) (*proxy.Answer, error) {
	return f(ctx)
}

// mortal is a node whose connections can be cut and refused.
type mortal struct {
	addr string
	mu   sync.Mutex
	dead bool
	open []net.Conn
}

func startMortal(t *testing.T, records map[string]string) *mortal {
	t.Helper()
	s := start(t, catalogOf(t, records), testOptions{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	m := &mortal{addr: ln.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", s.addr)
			if err != nil || !m.add(in, out) {
				in.Close()
				continue
			}
			running.Go(func() { io.Copy(in, out); in.Close() })
			running.Go(func() { io.Copy(out, in); out.Close() })
		}
	})
	t.Cleanup(func() { ln.Close(); m.kill(); running.Wait() })
	return m
}

func (m *mortal) add(conns ...net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = append(m.open, conns...)
	if m.dead {
		for _, c := range conns {
			c.Close()
		}
	}
	return !m.dead
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, c := range m.open {
		c.Close()
	}
	m.open = nil
}

func (m *mortal) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = false
}

// A node that asks two others gets everything in order while they go and come back in turn.
func TestScanWhileNodesAreKilled(t *testing.T) {
	records := manyRecords(6000, 2000)
	a, b := startMortal(t, records), startMortal(t, records)
	asker := startAsker(t, proxy.Options{Timeout: patience, StageTimeout: patience / 2}, a.addr, b.addr)
	_, resp := startLarge(t, asker, "/db?start=")
	var body bytes.Buffer
	for i := 0; ; i++ {
		n, err := io.CopyN(&body, resp.Body, 1<<20)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", int64(body.Len())+n, err)
		}
		mortals := []*mortal{a, b}
		mortals[i%2].kill()
		mortals[(i+1)%2].revive()
	}
	all, _, complete := parseLines(t, body.String())
	if !complete {
		t.Error("not complete")
	}
	samePairs(t, "with two nodes", all, wantPairs(records, "", "", ""))
}
