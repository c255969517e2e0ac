package resp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/reads"
	"sequins/server/resp"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// page sends HSCAN or SCAN and returns its cursor and what it has found.
func (c *client) page(args ...string) (cursor string, found []string) {
	c.t.Helper()
	answer := strings.TrimSuffix(strings.TrimPrefix(c.do(args...), "["), "]]")
	cursor, list, ok := strings.Cut(answer, " [")
	if !ok {
		c.t.Fatalf("%v: %s", args, answer)
	}
	return cursor, strings.Fields(list)
}

// all follows the cursors from the beginning; args have CURSOR in the place of the cursor.
func (c *client) all(args ...string) (found []string, pages int) {
	c.t.Helper()
	at := slices.Index(args, "CURSOR")
	for cursor := "0"; pages == 0 || cursor != "0"; pages++ {
		args[at] = cursor
		var some []string
		cursor, some = c.page(slices.Clone(args)...)
		found = append(found, some...)
	}
	return found, pages
}

func TestScan(t *testing.T) {
	some := map[string]string{}
	var keys, pairs []string
	for i := range 250 {
		k := fmt.Sprintf("k%03d", i)
		some[k], keys, pairs = fmt.Sprint("v", i), append(keys, k), append(pairs, k, fmt.Sprint("v", i))
	}
	some["l"], some["m*"] = large, "star"
	sets := catalog{"db": setOf(t, "db", "v1", some), "other": setOf(t, "other", "w1", map[string]string{"x": "y"}),
		"empty": setOf(t, "empty", "e1", map[string]string{"": "of the empty key"})}
	s := start(t, sets, resp.Options{}, reads.Options{})
	c := s.dial(t)
	if got := c.do("HSCAN", "empty", "0"); got != "[0 [ of the empty key]]" {
		t.Errorf("the empty key: %s", got)
	}
	for _, test := range []struct {
		args  []string
		want  []string
		pages int
	}{
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "k*"}, pairs, 25},
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "k*", "COUNT", "100"}, pairs, 3},
		{[]string{"HSCAN", "db", "CURSOR", "COUNT", "250", "NOVALUES"}, append(slices.Clone(keys), "l", "m*"), 2},
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "k01*", "COUNT", "10"}, pairs[20:40], 1},
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "k017"}, pairs[34:36], 1},
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "m\\*"}, []string{"m*", "star"}, 1},
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "z*"}, nil, 1},
		{[]string{"HSCAN", "db", "CURSOR", "MATCH", "l*"}, []string{"l", large}, 1},
		{[]string{"SCAN", "CURSOR", "MATCH", "other/*", "TYPE", "string"}, []string{"other/x"}, 1},
		{[]string{"SCAN", "CURSOR", "MATCH", "db/m*"}, []string{"db/m*"}, 1},
	} {
		if got, pages := c.all(test.args...); !slices.Equal(got, test.want) || pages != test.pages {
			t.Errorf("%v: %.200q in %d pages, want %.200q in %d", test.args, got, pages, test.want, test.pages)
		}
	}
	for in, want := range map[string]string{
		"HLEN db":                     "252",
		"HLEN nodb":                   "-ERR no such database",
		"DBSIZE":                      "-ERR no database is named: SELECT one, or HLEN db",
		"HSCAN nodb 0":                "-ERR no such database",
		"HSCAN db x":                  "-ERR invalid cursor",
		"HSCAN db 7":                  "-ERR invalid cursor",
		"HSCAN db 0 MATCH a?":         "-ERR only patterns of the form prefix* are supported",
		"HSCAN db 0 MATCH a*b":        "-ERR only patterns of the form prefix* are supported",
		"HSCAN db 0 COUNT 0":          "-ERR syntax error",
		"HSCAN db 0 COUNT x":          "-ERR value is not an integer or out of range",
		"HSCAN db 0 MATCH":            "-ERR syntax error",
		"SCAN 0":                      "-ERR no database is named: SELECT one, or MATCH db/prefix*",
		"SCAN 0 MATCH db/k* TYPE set": "-ERR all values are of the type string",
	} {
		if got := c.do(strings.Split(in, " ")...); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	cursor, _ := c.page("HSCAN", "db", "0")
	if got := c.do("HSCAN", "other", cursor); got != "-ERR invalid cursor" {
		t.Errorf("the cursor of another db: %s", got)
	}
	if got := s.dial(t).do("HSCAN", "db", cursor, "COUNT", "1"); !strings.HasSuffix(got, "[k010 v10]]") {
		t.Errorf("a cursor on another connection: %s", got)
	}
	c.do("SELECT", "db")
	if got, _ := c.all("SCAN", "CURSOR", "MATCH", "k00*"); !slices.Equal(got, keys[:10]) {
		t.Errorf("SCAN: %q", got)
	}
	if got := c.do("DBSIZE"); got != "252" {
		t.Errorf("DBSIZE: %s", got)
	}
}

// A cursor goes on in the content that it was given out for, also after a switch to another content of the same version.
func TestScanOfAnotherContent(t *testing.T) {
	set := version.NewSet("db")
	switchTo := func(c content.Content, value string) {
		v := version.New(version.Info{DB: "db", Content: c, Partitions: 1, Partitioner: shard.String, Following: version.Solo{}})
		versions.Put(t, v, map[string]string{"a": value, "b": value, "c": value}, versions.All)
		set.Prepare(v)
		expect.NoError(t, set.Activate(c.Input))
	}
	switchTo(contents.Of("v1"), "1")
	c := start(t, catalog{"db": set}, resp.Options{}, reads.Options{}).dial(t)
	first, _ := c.page("HSCAN", "db", "0", "COUNT", "1")
	switchTo(contents.Of("v1", "other files"), "2")
	if _, found := c.page("HSCAN", "db", first, "COUNT", "1"); !slices.Equal(found, []string{"b", "1"}) {
		t.Errorf("after the switch: %q", found)
	}
	second, found := c.page("HSCAN", "db", "0", "COUNT", "1")
	if !slices.Equal(found, []string{"a", "2"}) {
		t.Errorf("from the beginning: %q", found)
	}
	set.Remove(contents.In("v1"))
	if got := c.do("HSCAN", "db", first); got != "-ERR the version of the cursor cannot be read any more: begin again with cursor 0" {
		t.Errorf("of a content that is gone: %s", got)
	}
	if _, found := c.page("HSCAN", "db", second); !slices.Equal(found, []string{"b", "2", "c", "2"}) {
		t.Errorf("of the content that stays: %q", found)
	}
}

// Tokens are checked before cursors and names.
func TestScanRights(t *testing.T) {
	s := startNames(t, resp.Options{Tokens: tokens(t, "one abcdefghijklmnopqrstuvwx names\n")})
	c := s.dial(t)
	c.do("AUTH", "abcdefghijklmnopqrstuvwx")
	for in, want := range map[string]string{
		"HLEN other": "-NOPERM No permissions to access a key", "HLEN nodb": "-NOPERM No permissions to access a key", "HSCAN other 0": "-NOPERM No permissions to access a key",
		"HSCAN nodb 0": "-NOPERM No permissions to access a key", "SCAN 0 MATCH other/*": "-NOPERM No permissions to access a key",
		"HLEN names": "1006",
	} {
		if got := c.do(strings.Split(in, " ")...); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
