package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
)

// The largest number of keys: all absent, all in one partition, all the same.
func TestBatchesOfManyKeys(t *testing.T) {
	const n = 10_000
	records, present, absent := map[string]string{}, []string(nil), []string(nil)
	for i := 0; len(present) < n; i++ {
		key := fmt.Sprintf("key-%06d", i)
		if shard.String.Partition([]byte(key), 2) == 1 {
			records[key] = "value of " + key
			present = append(present, key)
		}
		absent = append(absent, "no-"+key)
	}
	s := start(t, catalogOf(t, records), testOptions{})
	for name, keys := range map[string][]string{"absent": absent[:n], "in one partition": present, "the same": slicesOf(present[0], n)} {
		for i, value := range binaryBatch(t, s, keys) {
			want := "absent"
			if v, ok := records[keys[i]]; ok {
				want = "=" + v
			}
			if value != want {
				t.Fatalf("%s: key %d is %q, want %q", name, i, value, want)
			}
		}
	}
	if got := s.post(t, "/db", append(present, "one more")); got.status != 413 {
		t.Errorf("10,001 keys: %d", got.status)
	}
}

func slicesOf(s string, n int) []string { return strings.Fields(strings.Repeat(s+" ", n)) }

// 10,000 keys of 64 KiB are 640 MB, of which nothing is read if the header says so, and no more than the limit if it does
// not.
func TestBatchOfLongKeys(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "1"}), testOptions{MaxBatchBytes: 1 << 20})
	key := append(binary.BigEndian.AppendUint32(nil, 64<<10), bytes.Repeat([]byte{'k'}, 64<<10)...)
	for _, framing := range []string{fmt.Sprintf("Content-Length: %d", 10_000*len(key)), "Transfer-Encoding: chunked"} {
		c := s.dial(t)
		if _, err := io.WriteString(c, "POST /db HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"+framing+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		sent := make(chan int64)
		go func() {
			var n int64
			for range 10_000 {
				chunk := key
				if strings.HasPrefix(framing, "Transfer") {
					chunk = fmt.Appendf(nil, "%x\r\n%s\r\n", len(key), key)
				}
				m, err := c.Write(chunk)
				n += int64(m)
				if err != nil {
					break
				}
			}
			sent <- n
		}()
		got := read(t, bufio.NewReader(c), "POST")
		c.Close()
		if n := <-sent; got.status != 413 || !strings.Contains(got.body, "more than 1048576 bytes") || !got.closed || n > 32<<20 {
			t.Errorf("%s: %d %q, closed: %v, %d bytes sent", framing, got.status, got.body, got.closed, n)
		}
	}
}

// Connections that announce bodies and send nothing take nothing from other batches.
func TestAnnouncedBodies(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "1"}), testOptions{MaxBatchBytes: 1 << 20})
	for range 200 {
		c, err := net.Dial("tcp", s.addr)
		expect.NoError(t, err)
		defer c.Close()
		if _, err := io.WriteString(c, "POST /db HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if got := s.get(t, "/db?key=a"); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
}

// A body in chunks counts for the limit as the same body in one piece.
func TestBodyInChunks(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": strings.Repeat("v", 100<<10)}), testOptions{MaxBatchBytes: 1 << 20})
	body := `{"keys":["a","a","a","a","a"` + strings.Repeat(`,"`+strings.Repeat("k", 60<<10)+`"`, 16) + `]}`
	for _, rest := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		if got := s.raw(t, "POST", "POST /db HTTP/1.1\r\nHost: x\r\n"+rest); got.status != 200 {
			t.Errorf("%.20q: %d %.100s", rest, got.status, got.body)
		}
	}
}
