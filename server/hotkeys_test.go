package server

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"sequins/observe/status"
	"sequins/reads"
	"sequins/test/expect"
)

// hotKeysOf reads the hot keys of db from a page.
func hotKeysOf(t *testing.T, s *running, target string) []status.HotKey {
	t.Helper()
	got := s.get(t, target, "Accept: application/json")
	var db status.DB
	if strings.HasPrefix(target, "/db") {
		if err := json.Unmarshal([]byte(got.body), &db); err != nil {
			t.Fatal(err)
		}
		return db.HotKeys
	}
	var st status.Status
	if err := json.Unmarshal([]byte(got.body), &st); err != nil {
		t.Fatal(err)
	}
	return st.DBs["db"].HotKeys
}

// The pages show the keys that are read most only as long as they may. Another node does not get them.
func TestHotKeysOnPages(t *testing.T) {
	const key = `<script>alert("k")</script>` + "\n\xff"
	c := catalogOf(t, map[string]string{key: "value"})
	c.state = status.Status{Node: "localhost", DBs: map[string]status.DB{"db": {}}}
	s := start(t, c, testOptions{})
	read := func() {
		client := newClient(t, s.addr, "/db/"+url.PathEscape(key))
		for range 1000 {
			client.ask(t)
		}
	}
	escaped := string(reads.AppendEscaped(nil, []byte(key)))
	page := func() string { return s.get(t, "/db/", "Accept: text/html").body }
	read()
	if p := page(); len(hotKeysOf(t, s, "/db/")) > 0 || strings.Contains(p, escaped) || strings.Contains(p, "alert(") {
		t.Errorf("the page shows the key:\n%s", p)
	}
	s.reads.SetShowKeys(true)
	read()
	expect.Eventually(t, "keys on the pages", func() bool { // they are rendered once a second
		node, db := hotKeysOf(t, s, "/"), hotKeysOf(t, s, "/db/")
		return len(node) == 1 && len(db) == 1 && db[0].Key == escaped && db[0].Share == 1 && db[0].PerSecond > 1 && strings.Contains(page(), escaped)
	})
	if p := page(); strings.Contains(p, "alert(") {
		t.Errorf("the key is not escaped:\n%s", p)
	}
	if got := s.get(t, "/?proxy=status"); !strings.Contains(got.body, `"db"`) || strings.Contains(got.body, "hot_keys") {
		t.Errorf("another node gets %s", got.body)
	}
}
