package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/observe/metrics"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// noise is a value that no codec makes smaller.
func noise(seed uint64, n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return string(b)
}

func TestLargeValues(t *testing.T) {
	records := map[string]string{}
	for _, n := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 128<<10 + 1, 5 << 20} {
		records[fmt.Sprint(n)] = noise(uint64(n), n)
	}
	s := start(t, catalogOf(t, records), testOptions{})
	c := s.dial(t)
	r := bufio.NewReader(c)
	for range 3 { // read at first, and then sent from the file
		for key, value := range records {
			fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\n\r\n", key)
			got := read(t, r, "GET")
			if got.status != 200 || got.body != value || got.length != int64(len(value)) || got.header.Get("Etag") != etagOf(value) {
				t.Errorf("%s: %d, %d bytes", key, got.status, len(got.body))
			}
		}
	}
	for key, value := range records {
		for range 20 {
			from := rand.IntN(len(value))
			to := from + rand.IntN(len(value)-from)
			fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\nRange: bytes=%d-%d\r\n\r\n", key, from, to)
			got := read(t, r, "GET")
			if got.status != 206 || got.body != value[from:to+1] {
				t.Errorf("%s from %d to %d: %d, %d bytes", key, from, to, got.status, len(got.body))
			}
		}
	}
}

// startLarge begins to read a large value, and stops after its header.
func startLarge(t *testing.T, s *running, target string) (net.Conn, *http.Response) {
	t.Helper()
	c := s.dial(t)
	expect.NoError(t, c.(*net.TCPConn).SetReadBuffer(256<<10))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 4<<10), nil)
	expect.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return c, resp
}

// A client that reads slowly gets its complete value, also if several versions are replaced
// meanwhile; the old version is closed afterwards.
func TestUpgradeUnderASlowReader(t *testing.T) {
	old, young := noise(1, 16<<20), "small now"
	set := version.NewSet("db")
	v1 := versionOf(t, "db", "v1", 1, map[string]string{"k": old})
	versions.Activate(t, set, v1)
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	_, resp := startLarge(t, s, "/db/k")

	versions.Activate(t, set, versionOf(t, "db", "v2", 1, map[string]string{"k": young}))
	if got := s.get(t, "/db/k"); got.body != young || got.header.Get("X-Sequins-Version") != "v2" {
		t.Errorf("after the upgrade: %+v", got)
	}
	closed := make(chan struct{})
	gone := set.Remove(contents.In("v1"))
	go func() {
		defer close(closed)
		closeVersion(t, gone)
	}()
	first := make([]byte, 1<<20)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
		t.Error("the old version was closed while it was read from")
	case <-time.After(20 * time.Millisecond):
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(first)+string(rest) != old {
		t.Errorf("read %d bytes of %d: %v", len(first)+len(rest), len(old), err)
	}
	if resp.Header.Get("X-Sequins-Version") != "v1" {
		t.Errorf("version %s", resp.Header.Get("X-Sequins-Version"))
	}
	<-closed
}

func TestClientGoesAway(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": noise(1, 16<<20)}))
	m := metrics.New()
	lines := new(expect.Output)
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server, RequestLog: lines})
	c, _ := startLarge(t, s, "/db/k")
	c.Close()
	expect.Eventually(t, "the request to end", func() bool { return answered(m)["499"] == 1 })
	closeVersion(t, set.Remove(contents.In("v1")))
	if got := lines.String(); !strings.Contains(got, " 499 GET /db/k ") {
		t.Errorf("request log: %q", got)
	}
}

// A client that stops reading is cut off; one that is only slow is not.
func TestStalledReader(t *testing.T) {
	value := noise(1, 4<<20)
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": value}))
	m := metrics.New()
	inBubble(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server}, func(_ *Server, dial func() net.Conn) {
		ask := func() *http.Response {
			c := dial()
			io.WriteString(c, "GET /db/k HTTP/1.1\r\nHost: x\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			expect.NoError(t, err)
			return resp
		}
		stalled := ask()
		time.Sleep(29 * time.Second)
		if n := answered(m)["499"]; n != 0 {
			t.Error("a reader was cut off before its time")
		}
		time.Sleep(2 * time.Second)
		if n := answered(m)["499"]; n != 1 {
			t.Error("the stalled reader has not been cut off")
		}
		if n, err := io.Copy(io.Discard, stalled.Body); err == nil {
			t.Errorf("the stalled reader got all of it, %d bytes", n)
		}

		slow := ask()
		began := time.Now()
		var got strings.Builder
		for got.Len() < len(value) {
			if _, err := io.CopyN(&got, slow.Body, 32<<10); err != nil {
				t.Fatalf("the slow reader was cut off after %v and %d bytes: %v", time.Since(began), got.Len(), err)
			}
			time.Sleep(8 * time.Second)
		}
		if got.String() != value || time.Since(began) < 15*time.Minute {
			t.Errorf("the slow reader got %d bytes in %v", got.Len(), time.Since(began))
		}
		slow.Body.Close()
	})
}

// damaged writes the block of one partition with records, flips a bit in it
// where the given bytes are, and opens it.
func damaged(t *testing.T, records map[string]string, where ...string) *version.Set {
	t.Helper()
	return damagedOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, LastModified: modified, Following: version.Solo{}}, records, where...)
}

func damagedOf(t *testing.T, info version.Info, records map[string]string, where ...string) *version.Set {
	t.Helper()
	path := versions.Block(t, 0, info.Partitions, records)
	b, err := os.ReadFile(path)
	expect.NoError(t, err)
	for _, w := range where {
		i := bytes.Index(b, []byte(w))
		if i < 0 {
			t.Fatalf("the block does not hold %.40q", w)
		}
		b[i] ^= 1
	}
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	r, err := blocks.Open(path)
	expect.NoError(t, err)
	v := version.New(info)
	expect.NoError(t, v.Put(0, r))
	set := version.NewSet("db")
	versions.Activate(t, set, v)
	return set
}

func TestDamage(t *testing.T) {
	small, large := noise(1, 1000), noise(2, 1<<20)
	tests := []struct {
		name, key, flip, rng string
		status               int
	}{
		{"small value", "small", small[500:600], "", 500},
		{"first chunk of a large value", "large", large[100:200], "", 500},
		{"first chunk, before the range", "large", large[100:200], "bytes=65536-", 206},
		{"first chunk that the range needs", "large", large[70000:70100], "bytes=65536-", 500},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := damaged(t, map[string]string{"small": small, "large": large}, test.flip)
			m := metrics.New()
			s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server})
			var headers []string
			if test.rng != "" {
				headers = append(headers, "Range: "+test.rng)
			}
			got := s.get(t, "/db/"+test.key, headers...)
			if got.status != test.status || got.header.Get("X-Sequins-Version") != "v1" {
				t.Fatalf("%+v", got)
			}
			if test.status != 500 {
				return
			}
			if got.body != "the block of this key cannot be read\n" || got.header.Get("Etag") != "" {
				t.Errorf("%+v", got)
			}
			select {
			case c := <-set.Corruptions():
				if c.Input.Name != "v1" || c.Partition != 0 || !errors.Is(c.Err, blocks.ErrCorrupt) {
					t.Errorf("reported %+v", c)
				}
			default:
				t.Error("nothing was reported")
			}
			if !strings.Contains(s.logs.String(), "corrupt") {
				t.Errorf("logged: %s", s.logs)
			}
			if got := s.do(t, "HEAD", "/db/large"); got.status != 200 || got.length != 1<<20 {
				t.Errorf("HEAD, which reads no chunk: %+v", got)
			}
		})
	}
}

// Damage that is found after the header was sent ends the connection: the client gets less than
// Content-Length, and no damaged byte.
func TestDamageInTheMiddle(t *testing.T) {
	large := noise(2, 4<<20)
	set := damaged(t, map[string]string{"large": large}, large[3<<20:3<<20+100])
	m := metrics.New()
	lines := new(expect.Output)
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server, RequestLog: lines})
	_, resp := startLarge(t, s, "/db/large")
	body, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading the body: %d bytes, %v", len(body), err)
	}
	if len(body) > 3<<20 || string(body) != large[:len(body)] {
		t.Errorf("got %d bytes, which are not the first of the value or more than are good", len(body))
	}
	if resp.StatusCode != 200 || resp.ContentLength != 4<<20 {
		t.Errorf("%d, %d bytes announced", resp.StatusCode, resp.ContentLength)
	}
	select {
	case c := <-set.Corruptions():
		if !errors.Is(c.Err, blocks.ErrCorrupt) {
			t.Errorf("reported %+v", c)
		}
	case <-time.After(patience):
		t.Error("nothing was reported")
	}
	expect.Eventually(t, "the request to be counted", func() bool { return answered(m)["500"] == 1 })
	if got := lines.String(); !strings.Contains(got, " 500 GET /db/large ") {
		t.Errorf("request log: %q", got)
	}
	closeVersion(t, set.Remove(contents.In("v1")))
}

// A client that reads slowly from a version that is being removed is cut off;
// from one that is served, and whose blocks stay, it may read as slowly as it likes.
func TestSlowReaderOfARemovedVersion(t *testing.T) {
	const size = 4 << 20
	for _, removed := range []bool{true, false} {
		cat := &catalog{sets: map[string]*version.Set{}}
		inBubble(t, cat, testOptions{}, func(_ *Server, dial func() net.Conn) {
			set := version.NewSet("db") // in the bubble, as what waits for its end has to be
			set.Prepare(versionOf(t, "db", "v1", 1, map[string]string{"k": noise(1, size)}))
			expect.NoError(t, set.Activate(contents.In("v1")))
			cat.mu.Lock()
			cat.sets["db"] = set
			cat.mu.Unlock()
			c := dial()
			fmt.Fprint(c, "GET /db/k HTTP/1.1\r\nHost: x\r\n\r\n")
			r := bufio.NewReaderSize(c, 4<<10)
			resp, err := http.ReadResponse(r, nil)
			expect.NoError(t, err)
			began, closed := time.Now(), make(chan error, 1)
			end := func() {
				gone := set.Remove(contents.In("v1"))
				go func() { closed <- gone.Close(context.Background()) }()
			}
			if removed {
				end()
			}
			n, piece := int64(0), make([]byte, 16<<10)
			for err == nil && n < 1<<20 {
				time.Sleep(time.Second)
				var m int
				m, err = io.ReadFull(resp.Body, piece)
				n += int64(m)
			}
			if (err != nil) != removed {
				t.Errorf("removed: %v; %d bytes in %v, %v", removed, n, time.Since(began), err)
			}
			c.Close()
			if !removed {
				end()
			}
			between(t, "closing the version", 0, time.Minute, func() {
				if err := <-closed; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A range may be read as slowly as a whole value, and the connection is good for more.
func TestSlowReaderOfARange(t *testing.T) {
	value := noise(1, 4<<20)
	inBubble(t, catalogOf(t, map[string]string{"k": value}), testOptions{}, func(_ *Server, dial func() net.Conn) {
		c := dial()
		r := bufio.NewReader(c)
		fmt.Fprint(c, "GET /db/k HTTP/1.1\r\nHost: x\r\nRange: bytes=1-\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		expect.NoError(t, err)
		var got strings.Builder
		for got.Len() < len(value)-1 && err == nil {
			_, err = io.CopyN(&got, resp.Body, 128<<10)
			time.Sleep(8 * time.Second)
		}
		if got.String() != value[1:] {
			t.Errorf("%d bytes, %v", got.Len(), err)
		}
		fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := read(t, r, "GET"); got.status != 200 {
			t.Errorf("%+v", got)
		}
	})
}
