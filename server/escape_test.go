package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sequins/test/expect"
)

// checkEscaped compares with encoding/json: what is written is read back, and a string in it ends where it should.
func checkEscaped(t *testing.T, s string) {
	t.Helper()
	b := appendEscapedJSON(make([]byte, 0, 6*len(s)+8), []byte(s))
	var got string
	if err := json.Unmarshal([]byte(`"`+string(b)+`"`), &got); err != nil || got != s {
		t.Fatalf("%q is written as %s: %v", s, b, err)
	}
}

// TestEscapedJSON has every byte that needs an escape, and those beside them, at every position of strings of all lengths
// up to several words.
func TestEscapedJSON(t *testing.T) {
	special := []string{`"`, `\`, "\x00", "\n", "\x1f", " ", "!", "#", "[", "]", "\x7f", "é", "\U0001f600", `""`, `\"`, "\"\x00"}
	for n := range 100 {
		for at := range n + 1 {
			for _, c := range special {
				checkEscaped(t, strings.Repeat("a", at)+c+strings.Repeat("z", n-at))
			}
		}
	}
}

func FuzzEscapedJSON(f *testing.F) {
	f.Add(strings.Repeat("a", 31)+`"`, uint8(3))
	f.Add(`{"id":1,"name":"Ann \\ Bob","mail":"a@example.com"}`, uint8(0))
	f.Fuzz(func(t *testing.T, s string, n uint8) {
		checkEscaped(t, strings.ToValidUTF8(strings.Repeat("a", int(n))+s, "\ufffd"))
	})
}

// TestValuesOfJSON asks for values that are JSON themselves, in all forms of an answer that are JSON.
func TestValuesOfJSON(t *testing.T) {
	records := map[string]string{}
	for i := range 60 {
		key := fmt.Sprintf("%skey \"%d\" \\", strings.Repeat("k", i), i)
		records[key] = fmt.Sprintf(`%s{"id":%d,"name":"Ann \"A\" Bob","text":"comment\"},{\"value\":\"forged\"}"}`, strings.Repeat(" ", i), i)
	}
	srv := start(t, catalogOf(t, records), testOptions{})
	var keys []string
	for key := range records {
		keys = append(keys, key)
	}
	body, err := json.Marshal(map[string]any{"keys": keys})
	expect.NoError(t, err)
	resp, err := http.Post("http://"+srv.addr+"/db", "application/json", bytes.NewReader(body))
	expect.NoError(t, err)
	defer resp.Body.Close()
	var batch struct{ Values []struct{ Value string } }
	if err := json.NewDecoder(resp.Body).Decode(&batch); err != nil || len(batch.Values) != len(keys) {
		t.Fatalf("%d values of %d keys: %v", len(batch.Values), len(keys), err)
	}
	for i, key := range keys {
		if batch.Values[i].Value != records[key] {
			t.Errorf("%q: %q", key, batch.Values[i].Value)
		}
	}
	checkLinesOfJSON(t, "http://"+srv.addr+"/db?prefix=", records)
}

// checkLinesOfJSON reads a range as NDJSON.
func checkLinesOfJSON(t *testing.T, url string, records map[string]string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	expect.NoError(t, err)
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	expect.NoError(t, err)
	defer resp.Body.Close()
	d, n := json.NewDecoder(resp.Body), 0
	for {
		var line struct{ Key, Value *string }
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if line.Key == nil {
			continue // the first line, or the last one
		}
		n++
		if line.Value == nil || *line.Value != records[*line.Key] {
			t.Errorf("%q: %v", *line.Key, line.Value)
		}
	}
	if n != len(records) {
		t.Errorf("%d lines of %d records", n, len(records))
	}
}
