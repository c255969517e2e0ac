package resp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/server/auth"
	"sequins/server/resp"
	"sequins/test/expect"
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
		{"CLIENT GETNAME", "nil"},
		{"GET names/nokey", "nil"},
		{"MGET names/nokey", "[nil]"},
		{"HELLO 2", hello("2")},
		{"CLIENT ID", "1"},
		{"CLIENT SETNAME a", "OK"},
		{"CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"},
		{"CLIENT SETINFO LIB-NAME redis-py", "OK"},
		{"CLIENT SETINFO lib-ver 5.0", "OK"},
		{"CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP."},
		{"CLIENT", "-ERR wrong number of arguments for 'client' command"},
		{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
		{"AUTH default x", "OK"},
		{"AUTH a b c", "-ERR syntax error"},
		{"CLIENT SETINFO", "-ERR wrong number of arguments for 'client|setinfo' command"},
		{"COMMAND DOCS", "[]"},
	} {
		if got := c.do(strings.Split(test.in, " ")...); got != test.want {
			t.Errorf("%s: %q, want %q", test.in, got, test.want)
		}
	}
	if info := c.do("INFO"); !strings.Contains(info, "\r\nsequins_version:test\r\n") || !strings.Contains(info, "loading:0\r\n") || !strings.Contains(info, "connected_clients:1\r\n") {
		t.Errorf("INFO: %s", info)
	}
}

// Tokens decide what can be read, and nothing tells a client without rights whether a db exists.
func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(doc string) {
		expect.NoError(t, os.WriteFile(file, []byte(doc), 0o600))
	}
	write("one  abcdefghijklmnopqrstuvwx  names\nall  zyxwvutsrqponmlkjihgfedc *\n")
	all, err := auth.Open(file)
	expect.NoError(t, err)
	s := startNames(t, resp.Options{Tokens: all})
	c := s.dial(t)
	const noAuth, noPerm, wrong = "-NOAUTH Authentication required.", "-NOPERM No permissions to access a key", "-WRONGPASS invalid username-password pair or user is disabled."
	check := func(in, want string) {
		t.Helper()
		if got := c.do(strings.Split(in, " ")...); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"GET names/key-1", "PING", "SELECT names", "MGET names/key-1 nodb/x", "INFO", "CLIENT ID", "TTL names/a", "ECHO x"} {
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
		for _, in := range []string{"GET DB/x", "MGET DB/x DB/y", "HGET DB x", "HMGET DB x y", "SELECT DB", "TYPE DB/x", "EXISTS DB/x"} {
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
	expect.NoError(t, all.Reload())
	check("GET x", noAuth)
	check("AUTH default abcdefghijklmnopqrstuvwx", "OK")
	check("GET x", noPerm)
}

// Before the node knows what it serves, reads are refused and connections made.
func TestHold(t *testing.T) {
	s := startNames(t, resp.Options{})
	s.reads.Hold()
	c := s.dial(t)
	for _, in := range []string{"GET names/key-1", "GET nodb/x", "PING", "MGET a/b c/d", "TYPE nodb/x"} {
		if got := c.do(strings.Split(in, " ")...); got != "-LOADING this node is starting" {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := c.do("INFO"); !strings.Contains(got, "loading:1") {
		t.Error(got)
	}
	s.reads.Admit()
	if got := c.do("GET", "names/key-1"); got != "value-1" {
		t.Error(got)
	}
}
