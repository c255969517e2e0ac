//go:build integration

package clients

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/client"
	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// Python and Go agree on the partition of every key.
func TestPartitionersInPython(t *testing.T) {
	t.Parallel()
	keys := append(randomKeys(1000), []byte{}, []byte("\xed\xa0"), []byte("\xed\xa0\x80"), []byte("\xed\xbf\xbf\xed"))
	for _, p := range shard.Partitioners() {
		for i, line := range drive(t, keys, "partition", p.String(), "1", "7", "1000", "65536") {
			want := fmt.Sprint(p.Partition(keys[i], 1), p.Partition(keys[i], 7), p.Partition(keys[i], 1000), p.Partition(keys[i], 1<<16))
			if line != want {
				t.Fatalf("%v: %q is in the partitions %s of 1, 7, 1000 and 65536, want %s", p, keys[i], line, want)
			}
		}
	}
}

// Go and Python accept the same addresses.
func TestAddresses(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{
		"node1:9599": "yes", "http://node1:9599": "yes", "https://node1:9599/": "yes", "[::1]:9599": "yes", "127.0.0.1:65535": "yes",
		"http://node1:9599/db": "no", "node1:9599/db": "no", "http://node1:9599?x": "no", "http://user@node1:9599": "no",
		"node1:99999": "no", "node1:65536": "no", "node1:0": "no", "node1": "no", "http://node1": "no", ":9599": "no", "ftp://node1:9599": "no",
	}
	var all [][]byte
	for _, address := range slices.Sorted(maps.Keys(addresses)) {
		all = append(all, []byte(address))
	}
	for i, line := range drive(t, all, "accept") {
		c, err := client.New(client.Options{Addrs: []string{string(all[i])}})
		if want := addresses[string(all[i])]; line != want || (err == nil) != (want == "yes") {
			t.Errorf("%s: Python %s, Go %v, want %s", all[i], line, err, want)
		}
		if err == nil {
			c.Close()
		}
	}
}

// Go and Python read every key of a node for every partitioner, and the map names the partitioner.
func TestOneNode(t *testing.T) {
	t.Parallel()
	const version = "run@2026-01-31T10:00:00+01:00,a=b"
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	keys := randomKeys(250)
	present, sections := keys[:225], ""
	for _, p := range shard.Partitioners() {
		writeVersion(t, source, p.String(), version, p, 8, present)
		sections += fmt.Sprintf("[db.%s]\npartitioner = %q\n", p, p) // some are found only for names or keys of their own
	}
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(dir, "store"), Sections: sections})
	c, err := client.New(client.Options{Addrs: []string{n.Addr}, Timeout: process.Deadline})
	expect.NoError(t, err)
	defer c.Close()
	for _, p := range shard.Partitioners() {
		db := p.String()
		n.WaitCurrent(t, db, version)
		var m struct {
			Partitioner string   `json:"partitioner"`
			Partitions  int      `json:"partitions"`
			Nodes       []string `json:"nodes"`
		}
		if r := n.Get(t, "/"+db+"?partitions"); json.Unmarshal(r.Body, &m) != nil || m.Partitioner != db || m.Partitions != 8 || len(m.Nodes) != 1 || m.Nodes[0] != "self" {
			t.Errorf("%s: %s", db, r.Body)
		}
		b, err := c.Session().MultiGet(t.Context(), db, keys)
		expect.NoError(t, err)
		lines := drive(t, keys, "read", db, n.Addr)
		for i, key := range keys {
			want := "-"
			if i < len(present) {
				want = "=" + hex.EncodeToString([]byte(valueOf(version, key)))
			}
			v, _ := c.Get(t.Context(), db, key)
			if shown(v.Data) != want || shown(b.Values[i]) != want || v.Version != version || lines[i] != version+" "+want {
				t.Fatalf("%s, %q: Go %q and %q, Python %s", db, key, v.Data, b.Values[i], lines[i])
			}
		}
	}
}

// shown is a value as drive.py prints it.
func shown(data []byte) string {
	if data == nil {
		return "-"
	}
	return "=" + hex.EncodeToString(data)
}

// An answer that a node must not send causes an exception in the client without delay.
func TestWrongAnswersInPython(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Type: application/octet-stream\r\n"
	answers := map[string]string{
		"nothing": "", "no HTTP": "SSH-2.0\r\n", "no version": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nv", "no length": ok + "\r\nvalue",
		"cut off": ok + "Content-Length: 9\r\n\r\nvalue", "cut off in a chunk": ok + "Transfer-Encoding: chunked\r\n\r\n9\r\nvalue",
		"large": ok + "Content-Length: 100000000000\r\n\r\nvalue", "redirect": "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
		"compressed": ok + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nv", "bad length": ok + "Content-Length: x\r\n\r\nvalue",
		"negative length": ok + "Content-Length: -5\r\n\r\nvalue", "endless": ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 5000),
		"no db": "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", "denied": "HTTP/1.1 403 Forbidden\r\nContent-Length: 1\r\n\r\nx",
		"header": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1000) + "\r\n",
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may have gone
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(process.Deadline)) //nolint:errcheck // the test would take longer
		name := strings.ReplaceAll(strings.Split(r.URL.Path, "/")[1], "-", " ")
		io.Copy(conn, bytes.NewBufferString(answers[name])) //nolint:errcheck // the client may have gone
	}))
	defer s.Close()
	kinds := map[string]string{"no db": "NoDatabase", "denied": "Denied", "large": "TooLarge", "endless": "TooLarge"}
	names := slices.Collect(maps.Keys(answers))
	args := []string{"refuse", s.Listener.Addr().String()}
	for _, name := range names {
		args = append(args, strings.ReplaceAll(name, " ", "-"))
	}
	lines := drive(t, [][]byte{[]byte("k")}, args...)
	if len(lines) != 2*len(names) {
		t.Fatalf("%d lines for two reads of %d databases", len(lines), len(names))
	}
	for i, line := range lines {
		name := names[i/2]
		kind, _, _ := strings.Cut(line, " ")
		if want := kinds[name]; kind != want && (want != "" || kind != "SequinsError") {
			t.Errorf("%s: %.300s", name, line)
		}
	}
}

// In Python, an integer is the key of its decimal text, also one of numpy; what is neither that nor str nor bytes is a TypeError.
func TestTypesOfKeysInPython(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	keys := [][]byte{[]byte("0"), []byte("5"), []byte("-7"), []byte("18446744073709551615"), []byte("k")}
	writeVersion(t, source, "db", "1", shard.String, 2, keys)
	n := process.Serve(t, process.Config{Source: source, Store: filepath.Join(dir, "store")}, "db", "1")
	script := filepath.Join(process.Root(), "test", "clients", "keys.py")
	if out, err := exec.CommandContext(t.Context(), venv.Python(t, filepath.Join("..", "web", "requirements.txt")), script, n.Addr, "db").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
