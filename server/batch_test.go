package server

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"sequins/proxy"
	"sequins/test/expect"
	"sequins/version"
)

// post sends keys as JSON made by encoding/json; keys that are not UTF-8 are in base64.
func (s *running) post(t testing.TB, target string, keys []string, headers ...string) answer {
	t.Helper()
	list := make([]any, 0, len(keys))
	for _, k := range keys {
		if utf8.ValidString(k) {
			list = append(list, k)
		} else {
			list = append(list, map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(k))})
		}
	}
	body, err := json.Marshal(map[string]any{"keys": list})
	expect.NoError(t, err)
	return s.postBody(t, target, string(body), headers...)
}

func (s *running) postBody(t testing.TB, target, body string, headers ...string) answer {
	t.Helper()
	lines := append([]string{"POST " + target + " HTTP/1.1", "Host: x", fmt.Sprintf("Content-Length: %d", len(body))}, headers...)
	return s.raw(t, "POST", strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
}

// item is a value of a JSON answer; nil if there is none.
type item = *struct {
	Value  *string `json:"value"`
	Base64 *string `json:"base64"`
}

// itemText returns the value, in a form that tells absent from empty.
func itemText(t testing.TB, i item) string {
	t.Helper()
	switch {
	case i == nil:
		return "absent"
	case i.Value != nil && i.Base64 == nil:
		return "=" + *i.Value
	case i.Base64 != nil && i.Value == nil:
		b, err := base64.StdEncoding.DecodeString(*i.Base64)
		if err != nil || utf8.Valid(b) {
			t.Errorf("base64 of %q: %v", b, err)
		}
		return "=" + string(b)
	}
	t.Errorf("a value with both or none: %+v", i)
	return ""
}

// oddRecords has keys and values of all kinds.
func oddRecords(rnd *rand.Rand) map[string]string {
	records := map[string]string{"": "no key", "empty": "", "nul\x00\x1f\"\\\n\t/": "\x00\x01\x1f\"\\\n\u2028</script>", "\xff\xfe": "\xff", "ü€😀": "ü€😀", "large": noise(1, 200<<10)}
	for i := range 300 {
		b := make([]byte, rnd.IntN(300))
		for j := range b {
			b[j] = byte(rnd.IntN(256) >> (i % 3)) // a third is ASCII
		}
		records[fmt.Sprintf("k%d", i)] = string(b)
	}
	return records
}

// Batches in every format have the values of single GETs, from a node that holds them and from one that asks it.
func TestBatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	records := oddRecords(rnd)
	holder := start(t, catalogOf(t, records), testOptions{})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	keys := append(slices.Collect(mapKeys(records)), "absent", "absent too", "k1", "k1")
	for range 5 {
		rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		some := keys[:rnd.IntN(len(keys)+1)]
		want := make([]string, 0, len(some))
		for _, k := range some {
			if v, ok := records[k]; ok {
				want = append(want, "="+v)
			} else {
				want = append(want, "absent")
			}
		}
		for name, s := range map[string]*running{"holder": holder, "asker": asker} {
			for format, got := range map[string][]string{"JSON": jsonBatch(t, s, some), "NDJSON": lineBatch(t, s, some), "bytes": binaryBatch(t, s, some)} {
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s: %d values differ from the %d wanted", name, format, len(got), len(want))
				}
			}
		}
	}
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func jsonBatch(t *testing.T, s *running, keys []string) (values []string) {
	t.Helper()
	got := s.post(t, "/db", keys)
	var a struct {
		Version string `json:"version"`
		Values  []item `json:"values"`
	}
	if err := json.Unmarshal([]byte(got.body), &a); err != nil || got.status != 200 || a.Version != "v1" || got.header.Get("X-Sequins-Version") != "v1" ||
		got.header.Get("Content-Type") != "application/json" || a.Values == nil {
		t.Errorf("%d %v %.100q: %v", got.status, got.header, got.body, err)
	}
	for _, v := range a.Values {
		values = append(values, itemText(t, v))
	}
	return values
}

func lineBatch(t *testing.T, s *running, keys []string) (values []string) {
	t.Helper()
	got := s.post(t, "/db/", keys, "Accept: application/x-ndjson")
	lines := strings.SplitAfter(got.body, "\n")
	if got.status != 200 || got.header.Get("Content-Type") != "application/x-ndjson" || lines[0] != `{"version":"v1"}`+"\n" || lines[len(lines)-1] != "" {
		t.Fatalf("%d %v %.100q", got.status, got.header, got.body)
	}
	for _, line := range lines[1 : len(lines)-1] {
		var v item
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%.100q: %v", line, err)
		}
		values = append(values, itemText(t, v))
	}
	return values
}

func binaryBatch(t *testing.T, s *running, keys []string) (values []string) {
	t.Helper()
	var body []byte
	for _, k := range keys {
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(k))), k...)
	}
	got := s.postBody(t, "/db", string(body), "Content-Type: application/octet-stream", "Accept: application/octet-stream")
	if got.status != 200 || got.length != int64(len(got.body)) || got.header.Get("Content-Type") != "application/octet-stream" {
		t.Fatalf("%d %v, %d bytes", got.status, got.header, len(got.body))
	}
	for b := []byte(got.body); len(b) > 0; {
		n := binary.BigEndian.Uint32(b)
		if b = b[4:]; n == 1<<32-1 {
			values = append(values, "absent")
			continue
		}
		values, b = append(values, "="+string(b[:n])), b[n:]
	}
	return values
}

// A batch that cannot be answered gets a status and one line, and the connection stays open if possible.
func TestBadBatches(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "1", "b": strings.Repeat("x", 3000)})
	c.sets["none"] = version.NewSet("none")
	s := start(t, c, testOptions{MaxBatchKeys: 3, MaxBatchBytes: 4000})
	for _, test := range []struct {
		target, body string
		status       int
		text         string
	}{
		{"/db", ``, 400, `the request is not {"keys": ["...", 12, {"base64": "..."}]}: no '{' at byte 0`},
		{"/db", `{"keys":["a"]} x`, 400, "something follows it"},
		{"/db", `{"key":["a"]}`, 400, `"key" instead of "keys"`},
		{"/db", `{"keys":["a",]}`, 400, "key 1 is neither a string nor an integer"},
		{"/db", `{"keys":["a" "b"]}`, 400, "no ']'"},
		{"/db", `{"keys":["a"],"version":"v1"}`, 400, `unknown field "version"`},
		{"/db", "{\"keys\":[\"\xff\"]}", 400, "a string that is not UTF-8"},
		{"/db", "{\"keys\":[\"\n\"]}", 400, "a control character"},
		{"/db", `{"keys":["\ud800"]}`, 400, "escape"},
		{"/db", `{"keys":["\ud800\u0041"]}`, 400, "half of a surrogate pair"},
		{"/db", `{"keys":["\x"]}`, 400, "an unknown escape"},
		{"/db", `{"keys":["\u12"]}`, 400, "a malformed escape"},
		{"/db", `{"keys":["`, 400, "without its end"},
		{"/db", `{"keys":["\`, 400, "without its end"},
		{"/db", `{"keys":[{"base64":"?"}]}`, 400, "malformed base64"},
		{"/db", `{"keys":["a",true]}`, 400, "key 1 is neither a string nor an integer at byte 13"},
		{"/db", `{"keys":[null]}`, 400, "key 0 is neither a string nor an integer"},
		{"/db", `{"keys":[["a"]]}`, 400, "key 0 is neither a string nor an integer"},
		{"/db", `{"keys":[1,2.0]}`, 400, "key 1 is a number and no integer"},
		{"/db", `{"keys":[1e3]}`, 400, "key 0 is a number and no integer"},
		{"/db", `{"keys":[-0]}`, 400, "key 0 is a number and no integer"},
		{"/db", `{"keys":[01]}`, 400, "key 0 is a number and no integer"},
		{"/db", `{"keys":[-]}`, 400, "key 0 is a number and no integer"},
		{"/db", `{"keys":["a","a","a","a"]}`, 413, "more than 3 keys"},
		{"/db", `{"keys":["b","b"]}`, 413, "the values are larger than 4000 bytes ([batch] max_bytes)"},
		{"/db", `{"keys":["` + strings.Repeat("x", 4000) + `"]}`, 413, "the request has more than 4000 bytes ([batch] max_bytes)"},
		{"/nodb", `{"keys":["a"]}`, 404, "no such db"},
		{"/none", `{"keys":["a"]}`, 503, "no version"},
		{"/db/a", `{"keys":["a"]}`, 405, "allowed are GET, HEAD\n"},
		{"/", `{"keys":["a"]}`, 405, "allowed are GET, HEAD\n"},
		{"/readyz", `{"keys":["a"]}`, 405, "allowed are GET, HEAD\n"},
		{"/db?proxy=v2", `{"keys":["a"]}`, 501, "not here"},
	} {
		got := s.postBody(t, test.target, test.body)
		if got.closed && got.status == 400 {
			t.Errorf("POST %s %.60q: the connection is closed", test.target, test.body)
		}
		if got.status != test.status || !strings.Contains(got.body, test.text) || strings.Count(got.body, "\n") != 1 || (got.status == 503) != (got.header.Get("Retry-After") != "") {
			t.Errorf("POST %s %.60q: %d %q, want %d %q", test.target, test.body, got.status, got.body, test.status, test.text)
		}
	}
	for body, want := range map[string]string{"\x00\x00\x00\x02a": "ends in key 0 or its length", "\xff\xff\xff\xffa": "ends in key 0", "\x00\x00\x00\x01a\x00": "ends in key 1 or its length"} {
		if got := s.postBody(t, "/db", body, "Content-Type: application/octet-stream; x=y"); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("%q: %d %q", body, got.status, got.body)
		}
	}
	long := "\x00\x01\x00\x01" + strings.Repeat("k", 64<<10+1)
	big := start(t, c, testOptions{})
	if got := big.postBody(t, "/db", long, "Content-Type: application/octet-stream"); got.status != 400 || !strings.Contains(got.body, "key 0 is longer than 65536 bytes") {
		t.Errorf("a key of 64 KiB and one byte: %d %q", got.status, got.body)
	}
}

// A chunked body is read to its end; one that breaks off is an error, not a shorter body.
func TestChunkedBatch(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "1"}), testOptions{})
	const head = "POST /db HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/octet-stream\r\nAccept: application/octet-stream\r\n\r\n"
	got := s.raw(t, "POST", head+"3\r\n\x00\x00\x00\r\n2\r\n\x01a\r\n0\r\n\r\n")
	if got.status != 200 || got.body != "\x00\x00\x00\x011" || got.closed {
		t.Errorf("%+v", got)
	}
	c := s.dial(t)
	io.WriteString(c, head+"5\r\n\x00\x00\x00\x01a\r\nx")
	c.(*net.TCPConn).CloseWrite() // the server need not wait for more
	if got := read(t, bufio.NewReader(c), "POST"); got.status != 400 {
		t.Errorf("a body that breaks off: %+v", got)
	}
}

// An integer is the key of its decimal text, however large it is.
func TestIntegersAreKeys(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"0": "zero", "-12": "twelve", "98765432109876543210": "many"}), testOptions{})
	body := `{"keys":[0, -12,98765432109876543210,5 ]}`
	got := s.raw(t, "POST", "POST /db HTTP/1.1\r\nHost: x\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	if want := `{"version":"v1","values":[{"value":"zero"},{"value":"twelve"},{"value":"many"},null]}` + "\n"; got.status != 200 || got.body != want {
		t.Errorf("%+v", got)
	}
}

// The keys as parameters, as people and forms write them.
func TestKeyParameters(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "1", "b c+": "2"}), testOptions{MaxBatchKeys: 2})
	for _, query := range []string{"key=a&key=b%20c%2B", "k%65y=a&key=b+c%2b", url.Values{"key": {"a", "b c+"}}.Encode()} {
		if got := s.get(t, "/db?"+query); got.status != 200 || got.body != `{"version":"v1","values":[{"value":"1"},{"value":"2"}]}`+"\n" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := s.get(t, "/db?key=%zz"); got.status != 400 {
		t.Errorf("%+v", got)
	}
	if got := s.get(t, "/db?key=a&key=a&key=a"); got.status != 413 {
		t.Errorf("%+v", got)
	}
	if got := s.do(t, "HEAD", "/db?key=a"); got.status != 200 || got.header.Get("X-Sequins-Version") != "v1" || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
}

// A batch needs a token that may read the db, and no other right.
func TestBatchAccess(t *testing.T) {
	s, _ := guarded(t, testOptions{})
	for header, want := range map[string]int{"X: y": 401, webToken: 200, otherToken: 403, opsToken: 403, allToken: 200} {
		if got := s.post(t, "/db", []string{"k"}, header); got.status != want {
			t.Errorf("POST with %s: %d, want %d", header, got.status, want)
		}
		if got := s.get(t, "/db?key=k", header); got.status != want {
			t.Errorf("GET with %s: %d, want %d", header, got.status, want)
		}
	}
}

// Batches read a session's version.
func TestBatchSession(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "1"}), testOptions{})
	if got := s.post(t, "/db", []string{"a"}, "X-Sequins-At-Least: v2"); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("%+v", got)
	}
	if got := s.post(t, "/db", []string{"a"}, "X-Sequins-Version: v0"); got.status != 412 {
		t.Errorf("%+v", got)
	}
	if got := s.post(t, "/db", []string{"a"}, "X-Sequins-Version: v1", "X-Sequins-At-Least: v1"); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// The beginning of an answer is kept until the rest is there, and no longer, wherever net/http cuts it.
func TestBatchOfAnySize(t *testing.T) {
	records := map[string]string{}
	for n := 3700; n < 4300; n += 3 {
		records[strconv.Itoa(n)] = strings.Repeat("x", n)
	}
	records["longer"] = strings.Repeat("y", 3*writeChunk/2)
	s := start(t, catalogOf(t, records), testOptions{})
	c, err := net.Dial("tcp", s.addr)
	expect.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for key, value := range records {
		fmt.Fprintf(c, "GET /db?key=%s HTTP/1.1\r\nHost: x\r\nAccept: application/octet-stream\r\n\r\n", key)
		response, err := http.ReadResponse(in, nil)
		expect.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 200 || len(body) < 4 || string(body[4:]) != value {
			t.Fatalf("%s: status %d, %d bytes, %v", key, response.StatusCode, len(body), err)
		}
	}
}
