package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// answers are what no node of sequins sends.
var answers = map[string]func(w http.ResponseWriter, r *http.Request) bool{
	"no version": func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, "value"); return true },
	"bad version": func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Sequins-Version", "../v 1")
		io.WriteString(w, "value")
		return true
	},
	"cut off": func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Sequins-Version", "v9")
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "value")
		panic(http.ErrAbortHandler)
	},
	"no length": func(w http.ResponseWriter, _ *http.Request) bool {
		return raw(w, "HTTP/1.1 200 OK\r\nX-Sequins-Version: v9\r\nContent-Type: application/octet-stream\r\n\r\nvalue")
	},
	"no HTTP": func(w http.ResponseWriter, _ *http.Request) bool { return raw(w, "SSH-2.0\r\n") },
	"closed":  func(w http.ResponseWriter, _ *http.Request) bool { return raw(w, "") },
	"compressed": func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Sequins-Version", "v9")
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "value")
		return true
	},
	"redirect": func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
		return true
	},
	"part": func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Sequins-Version", "v9")
		w.WriteHeader(http.StatusPartialContent)
		return true
	},
	"endless header": func(w http.ResponseWriter, _ *http.Request) bool {
		return raw(w, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20))
	},
	"no text": func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	},
	"unknown db": func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, strings.Repeat("x", 1<<20), http.StatusNotFound)
		return true
	},
}

// raw answers with bytes as they are, and closes the connection.
func raw(w http.ResponseWriter, answer string) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		io.WriteString(conn, answer) //nolint:errcheck // the client may have gone
		conn.Close()
	}
	return true
}

// A node of the map that answers nonsense costs a second request and nothing else.
func TestWrongAnswers(t *testing.T) {
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			good, bad := startFake(t, "v1", odd), startFake(t, "v1", odd)
			good.say(1, bad.addr)
			c := newClient(t, client.Options{}, good)
			learnMap(t, c, bad)
			bad.misbehave(answer)
			for range 5 {
				v, err := c.Get(t.Context(), "db", []byte("apple"))
				if err != nil || string(v.Data) != "a fruit" || v.Version != "v1" {
					t.Errorf("%q of %q, %v", v.Data, v.Version, err)
				}
				b, err := c.MultiGet(t.Context(), "db", [][]byte{[]byte("apple"), []byte("absent")})
				if err != nil || string(b.Values[0]) != "a fruit" || b.Values[1] != nil || b.Version != "v1" {
					t.Errorf("%q of %q, %v", b.Values, b.Version, err)
				}
			}
			good.misbehave(answer)
			if v, err := c.Get(t.Context(), "db", []byte("apple")); err == nil {
				t.Errorf("all nodes are wrong, and the value is %q", v.Data)
			}
		})
	}
}

// learnMap asks until the client asks a node that is not among its addresses.
func learnMap(t *testing.T, c *client.Client, n *fake) {
	t.Helper()
	expect.Eventually(t, "the client uses the map", func() bool {
		_, err := c.Get(t.Context(), "db", []byte("ключ"))
		expect.NoError(t, err)
		return n.asked("/db/%D0%BA%D0%BB%D1%8E%D1%87") > 0
	})
}

// Batches that do not fit the request are errors of the node.
func TestWrongBatches(t *testing.T) {
	good, bad := startFake(t, "v1", odd), startFake(t, "v1", odd)
	good.say(1, bad.addr)
	c := newClient(t, client.Options{}, good)
	learnMap(t, c, bad)
	for _, body := range []string{"", "\x00\x00\x00\x01", "\x00\x00\x00\x01xy", "\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xffx", "\x00\x00\x00\x00\x00\xff\xff\xffabc"} {
		bad.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X-Sequins-Version", "v9")
			w.Header().Set("Content-Type", "application/octet-stream")
			io.WriteString(w, body)
			return true
		})
		b, err := c.MultiGet(t.Context(), "db", [][]byte{[]byte("apple"), []byte("absent")})
		if err != nil || b.Version != "v1" || string(b.Values[0]) != "a fruit" {
			t.Errorf("%q: %q of %q, %v", body, b.Values, b.Version, err)
		}
	}
}

// The limits of sizes hold whether a node names the size or not.
func TestTooLarge(t *testing.T) {
	f := startFake(t, "v1", map[string]string{"k": strings.Repeat("v", 1000), "l": strings.Repeat("v", 600)})
	c := newClient(t, client.Options{MaxValue: 999, MaxBatch: 1100}, f)
	_, err := c.Get(t.Context(), "db", []byte("k"))
	expect.Error(t, "a large value", err, client.ErrTooLarge)
	_, err = c.MultiGet(t.Context(), "db", [][]byte{[]byte("k")})
	expect.Error(t, "a batch with a large value", err, client.ErrTooLarge)
	_, err = c.MultiGet(t.Context(), "db", [][]byte{[]byte("l"), []byte("l")})
	expect.Error(t, "a large batch", err, client.ErrTooLarge)
	if _, err = c.MultiGet(t.Context(), "db", [][]byte{[]byte("l")}); err != nil {
		t.Error(err)
	}
	f.misbehave(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Sequins-Version", "v1")
		for range 1000 {
			if _, err := io.WriteString(w, strings.Repeat("v", 1000)); err != nil {
				break
			}
			http.NewResponseController(w).Flush() //nolint:errcheck // chunked
		}
		return true
	})
	_, err = c.Get(t.Context(), "db", []byte("k"))
	expect.Error(t, "an endless value", err, client.ErrTooLarge)
}

// A node that sends a byte now and then is given up when the call ends; one that sends nothing, earlier.
func TestSlowAnswers(t *testing.T) {
	good, slow := startFake(t, "v1", odd), startFake(t, "v1", odd)
	good.say(1, slow.addr)
	c := newClient(t, client.Options{AttemptTimeout: 50 * time.Millisecond, HedgeBudget: -1}, good)
	learnMap(t, c, slow)
	for name, length := range map[string]string{"header": "", "body": "1000"} {
		slow.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
			if length != "" {
				w.Header().Set("X-Sequins-Version", "v1")
				w.Header().Set("Content-Length", length)
				http.NewResponseController(w).Flush() //nolint:errcheck // the client may have gone
			}
			return hang(w, r)
		})
		v, err := c.Get(t.Context(), "db", []byte("apple"))
		if err != nil || string(v.Data) != "a fruit" {
			t.Errorf("%s: %q, %v", name, v.Data, err)
		}
	}
}

// A node that takes a batch slowly is not silent, although it cannot begin its answer.
func TestSlowUpload(t *testing.T) {
	f := startFake(t, "v1", odd)
	f.misbehave(func(_ http.ResponseWriter, r *http.Request) bool {
		var body bytes.Buffer
		for {
			if _, err := io.CopyN(&body, r.Body, 1<<20); err == io.EOF {
				break
			} else if err != nil {
				return true // the client has gone
			}
			time.Sleep(150 * time.Millisecond)
		}
		r.Body = io.NopCloser(&body)
		return false
	})
	keys := make([][]byte, 500)
	for i := range keys {
		keys[i] = bytes.Repeat([]byte{'k'}, client.MaxKey)
	}
	c := newClient(t, client.Options{Timeout: time.Minute, AttemptTimeout: 3 * time.Second}, f)
	if b, err := c.MultiGet(t.Context(), "db", keys); err != nil || len(b.Values) != len(keys) {
		t.Errorf("%d values, %v", len(b.Values), err)
	}
	if n := c.Stats().Attempts - c.Stats().Hedged; n != 1 {
		t.Errorf("%d attempts", n)
	}
}

// Maps that are inconsistent, or of something else, are not used; what the addresses say still counts.
func TestWrongMaps(t *testing.T) {
	elsewhere := startFake(t, "v1", odd)
	const rest = `"partitioner":"string","partitions":1,"scheme":"http","nodes":[%q],"replicas":[[0]]}`
	ok := fmt.Sprintf(`{"db":"db","version":"v1",`+rest, elsewhere.addr)
	tests := map[string]string{
		"another db": strings.Replace(ok, `"db":"db"`, `"db":"x"`, 1), "version": strings.Replace(ok, `"v1"`, `"../v"`, 1),
		"partitioner": strings.Replace(ok, `"string"`, `"guess"`, 1), "partitions": strings.Replace(ok, `"partitions":1`, `"partitions":2000000000`, 1),
		"negative": strings.Replace(ok, `"partitions":1`, `"partitions":-1`, 1), "index": strings.Replace(ok, `[[0]]`, `[[1]]`, 1),
		"negative index": strings.Replace(ok, `[[0]]`, `[[-1]]`, 1), "scheme": strings.Replace(ok, `"http"`, `"https"`, 1),
		"no address": strings.Replace(ok, elsewhere.addr, "x/"+elsewhere.addr, 1), "user": strings.Replace(ok, elsewhere.addr, "u:p@"+elsewhere.addr, 1),
		"many replicas": strings.Replace(ok, `[[0]]`, `[[0`+strings.Repeat(",0", 100)+`]]`, 1), "no JSON": "<html>", "status page": `{"versions":{}}`,
		"endless": `{"db":"` + strings.Repeat("x", 5<<20),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			f := startFake(t, "v1", odd)
			f.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.RawQuery == "partitions" {
					io.WriteString(w, text)
				}
				return r.URL.RawQuery == "partitions"
			})
			c := newClient(t, client.Options{}, f)
			for range 20 {
				if v, err := c.Get(t.Context(), "db", []byte("apple")); err != nil || string(v.Data) != "a fruit" {
					t.Fatalf("%q, %v", v.Data, err)
				}
			}
			expect.Eventually(t, "the map was requested", func() bool { return f.asked("/db/?partitions") > 0 })
		})
	}
	if n := len(elsewhere.requests); n > 0 {
		t.Errorf("%d requests went to nodes of such maps", n)
	}
}
