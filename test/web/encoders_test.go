//go:build integration

package web

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// encoders write keys as parameters of a query with what languages have for it. Each gets a JSON array of lists of keys, and prints a
// line with the query for each list.
var encoders = map[string][]string{
	"urlencode":          {"python3", "-c", "import json,sys,urllib.parse as u; [print(u.urlencode({'key': keys}, doseq=True)) for keys in json.loads(sys.argv[1])]"},
	"urlencode, quote":   {"python3", "-c", "import json,sys,urllib.parse as u; [print(u.urlencode({'key': keys}, doseq=True, quote_via=u.quote)) for keys in json.loads(sys.argv[1])]"},
	"URLSearchParams":    {"node", "-e", "for (const keys of JSON.parse(process.argv[1])) console.log(new URLSearchParams(keys.map(k => ['key', k])).toString())"},
	"encodeURIComponent": {"node", "-e", "for (const keys of JSON.parse(process.argv[1])) console.log(keys.map(k => 'key=' + encodeURIComponent(k)).join('&'))"},
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
	all := [][]string{keys}
	for _, key := range keys {
		all = append(all, []string{key})
	}
	lists, err := json.Marshal(all)
	expect.NoError(t, err)
	for name, command := range encoders {
		out, err := exec.CommandContext(t.Context(), command[0], append(command[1:], string(lists))...).Output()
		queries := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if err != nil || len(queries) != len(all) {
			t.Fatalf("%s: %v, %q", name, err, out)
		}
		query := queries[0]
		for _, path := range []string{"/words?", "/words/?"} {
			body := n.Get(t, path+query).Body
			var got struct{ Values []struct{ Value string } }
			if err := json.Unmarshal(body, &got); err != nil || len(got.Values) != len(keys) {
				t.Errorf("%s: %s: %v, %s", name, query, err, body)
				continue
			}
			for i, key := range keys {
				if got.Values[i].Value != records[key] {
					t.Errorf("%s: %q is answered with %q", name, key, got.Values[i].Value)
				}
			}
		}
		for i, key := range keys { // a prefix is written as a key is
			body := n.Get(t, "/words?"+strings.Replace(queries[1+i], "key=", "prefix=", 1)).Body
			var first struct{ Key string }
			if err := json.NewDecoder(bytes.NewReader(body)).Decode(&first); err != nil || first.Key != key {
				t.Errorf("%s: the prefix %q has the key %q: %v", name, key, first.Key, err)
			}
		}
	}
}
