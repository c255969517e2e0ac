package resp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/reads"
	"sequins/server/auth"
	"sequins/server/resp"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/version"
)

// The commands of a connection, in RESP2 and RESP3.
func TestConnectionCommands(t *testing.T) {
	s := startNames(t, resp.Options{Build: "test"})
	c := s.dial(t)
	hello := func(proto string) string {
		return "[server redis version 7.2.0 proto " + proto + " id 1 mode standalone role master modules []]"
	}
	for _, test := range []struct{ in, want string }{
		{"HELLO", hello("2")},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range"},
		{"HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'"},
		{"HELLO 3 AUTH default x SETNAME me", hello("3")},
		{"HELLO 3 AUTH other x", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"CLIENT GETNAME", "me"},
		{"GET names/nokey", "nil"},
		{"MGET names/nokey", "[nil]"},
		{"HELLO 2 SETNAME a\tb", "-ERR Client names cannot contain spaces, newlines or special characters."},
		{"HELLO 2", hello("2")},
		{"CLIENT ID", "1"},
		{"CLIENT SETNAME a", "OK"},
		{"CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"},
		{"CLIENT SETINFO LIB-NAME redis-py", "OK"},
		{"CLIENT SETINFO lib-ver 5.0", "OK"},
		{"CLIENT SETINFO foo x", "-ERR Unrecognized option 'foo'"},
		{"CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP."},
		{"CLIENT", "-ERR wrong number of arguments for 'client' command"},
		{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
		{"AUTH default x", "OK"},
		{"AUTH a b c", "-ERR syntax error"},
		{"COMMAND DOCS", "-ERR unknown subcommand 'DOCS'. Try COMMAND HELP."},
		{"COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP."},
	} {
		if got := c.do(strings.Split(test.in, " ")...); got != test.want {
			t.Errorf("%s: %q, want %q", test.in, got, test.want)
		}
	}
	if info := c.do("INFO"); !strings.Contains(info, "\r\nsequins_version:test\r\n") || !strings.Contains(info, "loading:0\r\n") || !strings.Contains(info, "connected_clients:1\r\n") {
		t.Errorf("INFO: %s", info)
	}
	if all := c.do("COMMAND"); !strings.HasPrefix(all, "[[auth -2 [fast loading no_auth] 0 0 0 [] [] [] []] ") || !strings.Contains(all, "[mget -2 [readonly fast] 1 -1 1 [] [] [] []]") {
		t.Errorf("COMMAND: %s", all)
	}
}

// upgraded is a set in which v2 has replaced v1, which can still be read.
func upgraded(t *testing.T) *version.Set {
	set := version.NewSet("db")
	for _, name := range []string{"v1", "v2"} {
		v := version.New(version.Info{DB: "db", Content: contents.Of(name), Partitions: 1, Partitioner: shard.String, Following: version.Solo{}})
		if err := v.Put(0, blockOf(t, 0, 1, map[string]string{"k": name})); err != nil {
			t.Fatal(err)
		}
		set.Prepare(v)
		if err := set.Activate(contents.In(name)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeVersion(t, set, name) })
	}
	set.Retire(contents.In("v1"))
	return set
}

// A client can require versions, and learns which one has answered.
func TestSessions(t *testing.T) {
	s := start(t, catalog{"db": upgraded(t), "names": setOf(t, "names", "w7", records())}, resp.Options{}, reads.Options{})
	c := s.dial(t)
	behind := "-TRYAGAIN this node does not serve the version of sequins-at-least yet"
	for _, test := range []struct{ in, want string }{
		{"GET db/k", "v2"},
		{"CLIENT SETINFO sequins-at-least db/v2", "OK"},
		{"GET db/k", "v2"},
		{"MGET db/k db/x", "[v2 nil]"},
		{"CLIENT SETINFO sequins-at-least db/v3", "OK"},
		{"GET db/k", behind},
		{"GET db/x", behind},
		{"MGET db/k db/x", behind},
		{"EXISTS db/k", behind},
		{"GET names/key-1", "value-1"},
		{"CLIENT SETINFO sequins-at-least db/", "OK"},
		{"GET db/k", "v2"},
		{"CLIENT SETINFO sequins-at-least db", "-ERR the value must be db/version, or db/ to end the requirement"},
		{"CLIENT SETINFO sequins-attributes maybe", "-ERR syntax error"},
		{"CLIENT SETINFO sequins-attributes on", "OK"},
		{"GET db/k", "v2"}, // RESP2 has no attributes
		{"HELLO 3", ""},
		{"GET db/k", "|[sequins-versions [db v2]]|v2"},
		{"GET db/x", "|[sequins-versions [db v2]]|nil"},
		{"MGET db/k db/k", "|[sequins-versions [db v2]]|[v2 v2]"},
		{"EXISTS names/key-1", "|[sequins-versions [names w7]]|1"},
		{"GET names/large", "|[sequins-versions [names w7]]|" + large},
		{"GET nodb/x", "-ERR no such database"},
		{"CLIENT SETINFO sequins-attributes off", "OK"},
		{"GET db/k", "v2"},
	} {
		if got := c.do(strings.Split(test.in, " ")...); got != test.want && test.in != "HELLO 3" {
			t.Errorf("%s: %.100q, want %.100q", test.in, got, test.want)
		}
	}
}

// Tokens decide what can be read, and nothing tells a client without rights whether a db exists.
func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(doc string) {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one  abcdefghijklmnopqrstuvwx  names\nall  zyxwvutsrqponmlkjihgfedc *\n")
	all, err := auth.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	s := startNames(t, resp.Options{Tokens: all})
	c := s.dial(t)
	const noAuth, noPerm, wrong = "-NOAUTH Authentication required.", "-NOPERM No permissions to access a key", "-WRONGPASS invalid username-password pair or user is disabled."
	check := func(in, want string) {
		t.Helper()
		if got := c.do(strings.Split(in, " ")...); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"GET names/key-1", "PING", "SELECT names", "MGET names/key-1 nodb/x", "COMMAND", "INFO", "CLIENT ID", "SET a b", "TTL names/a", "ECHO x"} {
		check(in, noAuth)
	}
	check("FOO", "-ERR unknown command 'FOO', with args beginning with: ")
	check("AUTH nosuchtoken", wrong)
	check("AUTH other abcdefghijklmnopqrstuvwx", wrong)
	check("GET names/key-1", noAuth)
	if got := c.do("HELLO", "3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called") {
		t.Error(got)
	}
	check("AUTH abcdefghijklmnopqrstuvwx", "OK")
	check("GET names/key-1", "value-1")
	for _, db := range []string{"other", "nodb"} {
		for _, in := range []string{"GET DB/x", "MGET DB/x DB/y", "HGET DB x", "HMGET DB x y", "SELECT DB", "TYPE DB/x", "EXISTS DB/x", "CLIENT SETINFO sequins-at-least DB/v"} {
			check(strings.ReplaceAll(in, "DB", db), noPerm)
		}
	}
	if got := c.do("HELLO", "2", "AUTH", "all", "zyxwvutsrqponmlkjihgfedc"); got[0] != '[' {
		t.Error(got)
	}
	check("GET other/x", "other x")
	check("SELECT other", "OK")
	check("GET x", "other x")

	// A token that is no longer in the file ends what its holders may do.
	write("one  abcdefghijklmnopqrstuvwx  names\n")
	if err := all.Reload(); err != nil {
		t.Fatal(err)
	}
	check("GET x", noAuth)
	check("AUTH default abcdefghijklmnopqrstuvwx", "OK")
	check("GET x", noPerm)
}

// Before the node knows what it serves, reads are refused and connections made.
func TestHold(t *testing.T) {
	s := startNames(t, resp.Options{})
	s.Hold()
	c := s.dial(t)
	for _, in := range []string{"GET names/key-1", "GET nodb/x", "PING", "MGET a/b c/d", "TYPE nodb/x"} {
		if got := c.do(strings.Split(in, " ")...); got != "-LOADING this node is starting" {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := c.do("INFO"); !strings.Contains(got, "loading:1") {
		t.Error(got)
	}
	s.Admit()
	if got := c.do("GET", "names/key-1"); got != "value-1" {
		t.Error(got)
	}
}
