package resp_test

import (
	"strings"
	"testing"

	"sequins/reads"
	"sequins/server/resp"
)

// The answers of commands, one after the other on a connection.
func TestCommands(t *testing.T) {
	c := startNames(t, resp.Options{}).dial(t)
	for _, test := range []struct{ in, want string }{
		{"PING", "PONG"},
		{"PING hello", "hello"},
		{"PING a b", "-ERR wrong number of arguments for 'ping' command"},
		{"ECHO hello", "hello"},
		{"GET names/key-7", "value-7"},
		{"get names/key-7", "value-7"},
		{"GET names/nokey", "nil"},
		{"GET names/empty", ""},
		{"GET names/", "empty key"},
		{"GET names/a/b", "slash"},
		{"GET names/large", large},
		{"GET names/medium", large[:70<<10]},
		{"GET nodb/a", "-ERR no such database"},
		{"GET /a", "-ERR no such database"},
		{"GET none/a", "-LOADING no version of this database can be read on this node yet"},
		{"GET perhaps/a", "-LOADING no version of this database can be read on this node yet"},
		{"GET nokey", "-ERR the key names no database: ask for db/key, or SELECT the database"},
		{"GET", "-ERR wrong number of arguments for 'get' command"},
		{"GET a b", "-ERR wrong number of arguments for 'get' command"},
		{"GET names/" + strings.Repeat("k", 65536), "nil"},
		{"GET names/" + strings.Repeat("k", 65537), "-ERR the key is longer than 65536 bytes"},
		{"MGET names/key-1 names/nokey names/empty names/key-1", "[value-1 nil  value-1]"},
		{"MGET names/large names/medium", "[" + large + " " + large[:70<<10] + "]"},
		{"MGET names/key-1 other/x", "-ERR the keys are of several databases: send a command for each"},
		{"EXISTS names/key-1 other/x", "-ERR the keys are of several databases: send a command for each"},
		{"MGET none/x none/y", "-LOADING no version of this database can be read on this node yet"},
		{"MGET names/key-1 x", "-ERR the key names no database: ask for db/key, or SELECT the database"},
		{"MGET", "-ERR wrong number of arguments for 'mget' command"},
		{"EXISTS names/key-1", "1"},
		{"EXISTS names/large", "1"},
		{"EXISTS names/nokey", "0"},
		{"EXISTS names/empty names/ names/nokey names/key-1 names/key-1", "4"},
		{"EXISTS nodb/x", "-ERR no such database"},
		{"STRLEN names/large", "327680"},
		{"STRLEN names/empty", "0"},
		{"STRLEN names/nokey", "0"},
		{"TYPE names/key-7", "string"},
		{"TYPE names/large", "string"},
		{"TYPE names/nokey", "none"},
		{"TYPE nodb/x", "-ERR no such database"},
		{"TTL names/key-7", "-1"},
		{"TTL names/", "-1"},
		{"TTL names/nokey", "-2"},
		{"PTTL names/empty", "-1"},
		{"PTTL names/nokey", "-2"},
		{"HGET names key-3", "value-3"},
		{"HGET names a/b", "slash"},
		{"HGET names large", large},
		{"HGET names x", "nil"},
		{"HGET nodb x", "-ERR no such database"},
		{"HMGET names key-3 x key-4", "[value-3 nil value-4]"},
		{"HMGET names", "-ERR wrong number of arguments for 'hmget' command"},
		{"HEXISTS names key-3", "1"},
		{"HEXISTS names x", "0"},
		{"HSTRLEN names key-3", "7"},
		{"HSTRLEN names x", "0"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"SELECT nodb", "-ERR DB index is out of range"},
		{"SELECT names", "OK"},
		{"GET key-3", "value-3"},
		{"GET a/b", "slash"},
		{"MGET key-3 other/x", "[value-3 nil]"},
		{"HGET other x", "other x"},
		{"SELECT 0", "OK"},
		{"GET names/key-3", "value-3"},
		{"SET names/a b", "-ERR unknown command 'SET', with args beginning with: 'names/a' 'b' "},
		{"FOO", "-ERR unknown command 'FOO', with args beginning with: "},
		{"Foo a b", "-ERR unknown command 'Foo', with args beginning with: 'a' 'b' "},
		{"QUIT", "OK"},
	} {
		if got := c.do(strings.Split(test.in, " ")...); got != test.want {
			t.Errorf("%.60s: %.100q, want %.100q", test.in, got, test.want)
		}
	}
	c.closed()
}

// A pipeline has the answers of its commands in order, whatever they are, and however its bytes arrive.
func TestPipeline(t *testing.T) {
	s := startNames(t, resp.Options{})
	var in strings.Builder
	var want []string
	add := func(answer string, args ...string) {
		in.WriteString(command(args...))
		want = append(want, answer)
	}
	for i := range 300 {
		n := strings.Repeat("0", 0) + string(rune('0'+i%10))
		switch i % 12 {
		case 0:
			add("value-"+n, "GET", "names/key-"+n)
		case 1:
			add("nil", "GET", "names/nokey")
		case 2:
			add("[value-"+n+" nil]", "MGET", "names/key-"+n, "names/x")
		case 3:
			add("PONG", "PING")
		case 4:
			add("1", "EXISTS", "names/large")
		case 5:
			add(large, "HGET", "names", "large")
		case 6:
			add("other x", "GET", "other/x")
		case 7:
			add("-ERR no such database", "GET", "nodb/x")
		case 8:
			add("-ERR no such database", "HGET", "nodb", "x")
		case 9:
			add("7", "STRLEN", "names/key-"+n)
		case 10:
			add("-ERR unknown command 'SET', with args beginning with: 'names/x' 'y' ", "SET", "names/x", "y")
		case 11:
			add("string", "TYPE", "names/key-"+n)
		}
	}
	for name, segment := range map[string]int{"at once": in.Len(), "in bytes": 1, "in pieces": 97} {
		c := s.dial(t)
		go func() {
			for rest := in.String(); rest != ""; {
				n := min(segment, len(rest))
				c.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
		}()
		for i := range want {
			if got := c.reply(); got != want[i] {
				t.Fatalf("%s: answer %d: %.100q, want %.100q", name, i, got, want[i])
			}
		}
	}
}

// If the keys of a pipeline cannot be looked up together, each command has its own answer.
func TestPipelineOfTooMuch(t *testing.T) {
	sets := catalog{"names": setOf(t, "names", "v2", records()), "half": setOf(t, "half", "h1", records(), 1)}
	c := start(t, sets, resp.Options{}, reads.Options{MaxBatchBytes: 400 << 10, MaxBatchKeys: 50}).dial(t)
	c.send(strings.Repeat(command("GET", "names/large"), 5) + command("MGET", "names/large", "names/large") +
		command("EXISTS", "names/large", "names/large", "names/x", "names/large") + command("GET", "names/key-1"))
	for range 5 {
		if got := c.reply(); got != large {
			t.Errorf("%.100q", got)
		}
	}
	for _, want := range []string{"-ERR the values are too large for one answer: ask for fewer keys", "-ERR the values are too large for one answer: ask for fewer keys", "value-1"} {
		if got := c.reply(); got != want {
			t.Errorf("%.100q, want %q", got, want)
		}
	}
	if got := c.do(append([]string{"MGET"}, strings.Split(strings.Repeat("names/key-1 ", 51), " ")[:51]...)...); got != "-ERR too many keys in one command" {
		t.Errorf("%.100q", got)
	}
	// half of the keys are in a partition that no node has
	var want []string
	for i := range 40 {
		key := "half/key-" + strings.Repeat("1", i%7+1)
		c.send(command("GET", key))
		want = append(want, key)
	}
	lost, found := 0, 0
	for range want {
		switch got := c.reply(); {
		case got == "-ERR the block of this key cannot be read":
			lost++
		case strings.HasPrefix(got, "value-") || got == "nil":
			found++
		default:
			t.Errorf("%.100q", got)
		}
	}
	if lost == 0 || found == 0 {
		t.Errorf("%d keys are lost and %d found", lost, found)
	}
}
