//go:build integration

package web

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/process"
)

// encoders write keys as parameters of a query with what languages have for it. Each prints the query for the keys that it gets as a JSON array.
var encoders = map[string][]string{
	"urlencode":          {"python3", "-c", "import json,sys,urllib.parse as u; print(u.urlencode({'key': json.loads(sys.argv[1])}, doseq=True))"},
	"urlencode, quote":   {"python3", "-c", "import json,sys,urllib.parse as u; print(u.urlencode({'key': json.loads(sys.argv[1])}, doseq=True, quote_via=u.quote))"},
	"URLSearchParams":    {"node", "-e", "console.log(new URLSearchParams(JSON.parse(process.argv[1]).map(k => ['key', k])).toString())"},
	"encodeURIComponent": {"node", "-e", "console.log(JSON.parse(process.argv[1]).map(k => 'key=' + encodeURIComponent(k)).join('&'))"},
}

// Keys with spaces and plus signs are read by what encoders of forms write.
func TestKeysOfEncoders(t *testing.T) {
	t.Parallel()
	keys := []string{"a b", "a+b", "a%2Bb", "a%20b", "100% & more=x;y", " ", "+", "größe 長さ", "a/b?c#d"}
	records := map[string]string{}
	for _, key := range keys {
		records[key] = "the value of <" + key + ">"
	}
	dir := t.TempDir()
	writeVersion(t, filepath.Join(dir, "source", "words", "1"), records)
	n := process.Start(t, process.Config{Source: filepath.Join(dir, "source"), Store: filepath.Join(dir, "store")})
	n.WaitFor(t, "it is ready", func() bool { r, err := n.TryGet("/readyz"); return err == nil && r.Code == 200 })
	list, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range encoders {
		query, err := exec.CommandContext(t.Context(), command[0], append(command[1:], string(list))...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, path := range []string{"/words?", "/words/?"} {
			_, body := curl(t, n, path+strings.TrimSpace(string(query)))
			var got struct{ Values []struct{ Value string } }
			if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Values) != len(keys) {
				t.Errorf("%s: %s: %v, %s", name, query, err, body)
				continue
			}
			for i, key := range keys {
				if got.Values[i].Value != records[key] {
					t.Errorf("%s: %q is answered with %q", name, key, got.Values[i].Value)
				}
			}
		}
		for _, key := range keys { // a prefix is written as a key is
			one, _ := json.Marshal([]string{key})
			query, err := exec.CommandContext(t.Context(), command[0], append(slices.Clone(command[1:]), string(one))...).Output()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_, body := curl(t, n, "/words?"+strings.Replace(strings.TrimSpace(string(query)), "key=", "prefix=", 1))
			var first struct{ Key string }
			if err := json.NewDecoder(strings.NewReader(body)).Decode(&first); err != nil || first.Key != key {
				t.Errorf("%s: the prefix %q has the key %q: %v", name, key, first.Key, err)
			}
		}
	}
}
