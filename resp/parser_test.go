package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var testLimits = limits{args: 8, bulk: 100, total: 300}

// parsed feeds a parser the bytes of s in the given segments, and returns what it makes of them as text.
func parsed(p *parser, s string, segment func() int) []string {
	var got []string
	add := func() bool {
		for {
			cmd, ok, err := p.next()
			if err != nil {
				got = append(got, "error: "+err.Error())
				return false
			}
			if !ok {
				return true
			}
			got = append(got, fmt.Sprintf("%d %q", cmd.refused, cmd.args))
		}
	}
	for len(s) > 0 {
		room := p.room(func(int) bool { return true })
		n := copy(room[:min(len(room), max(segment(), 1))], s)
		p.w += n
		s = s[n:]
		if !add() {
			return got
		}
	}
	if !p.between() {
		got = append(got, "incomplete")
	}
	return got
}

func bulks(args ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return s
}

// The commands of bytes do not depend on how they arrive.
func TestParser(t *testing.T) {
	long := strings.Repeat("x", 101)
	for _, test := range []struct{ in, want string }{
		{bulks("GET", "a"), `0 ["GET" "a"]`},
		{bulks("GET", "") + bulks("PING"), `0 ["GET" ""]|0 ["PING"]`},
		{bulks("a\r\n$3\r\n"), `0 ["a\r\n$3\r\n"]`},
		{"PING\r\n", `0 ["PING"]`},
		{"PING\n\r\n\n  \r\n*0\r\n*-1\r\nGET a\n", `0 ["PING"]|0 ["GET" "a"]`},
		{`get "a b\x41\n\q\"" 'it\'s\n' ` + "x\r\n", `0 ["get" "a bA\nq\"" "it's\\n" "x"]`},
		{`get "a` + "\r\n", "error: Protocol error: unbalanced quotes in request"},
		{`get "a"b` + "\r\n", "error: Protocol error: unbalanced quotes in request"},
		{strings.Repeat("a", maxInline+2), "error: Protocol error: too big inline request"},
		{"*2\r\n$3\r\nGET\r\n$1", `incomplete`},
		{"*x\r\n", "error: Protocol error: invalid multibulk length"},
		{"*\r\n", "error: Protocol error: invalid multibulk length"},
		{"*1\n$4", "error: Protocol error: invalid multibulk length"},
		{"*01\r\n", "error: Protocol error: invalid multibulk length"},
		{"*-0\r\n", "error: Protocol error: invalid multibulk length"},
		{"*1\rx", "error: Protocol error: invalid multibulk length"},
		{"*1048577\r\n", "error: Protocol error: invalid multibulk length"},
		{"*9223372036854775808\r\n", "error: Protocol error: invalid multibulk length"},
		{"*1\r\n*1\r\n", "error: Protocol error: expected '$', got '*'"},
		{"*1\r\n\x00", "error: Protocol error: expected '$', got '?'"},
		{"*1\r\n$-1\r\n", "error: Protocol error: invalid bulk length"},
		{"*1\r\n$9223372036854775807\r\n", "error: Protocol error: invalid bulk length"},
		{"*1\r\n$9223372036854775808\r\n", "error: Protocol error: invalid bulk length"},
		{"*1\r\n$536870913\r\n", "error: Protocol error: invalid bulk length"},
		{"*1\r\n$" + strings.Repeat("1", 100), "error: Protocol error: invalid bulk length"},
		{"*1\r\n$1\r\nabc", "error: Protocol error: expected CRLF after an argument"},
		{bulks("GET", long) + bulks("PING"), `2 ["GET"]|0 ["PING"]`},
		{bulks(long, "x") + bulks("PING"), `2 []|0 ["PING"]`},
		{bulks(slices.Repeat([]string{"a"}, 9)...) + bulks("PING"), `1 []|0 ["PING"]`},
		{bulks("MGET", long[1:], long[1:], long[1:], "b") + bulks("PING"), `3 ["MGET"]|0 ["PING"]`},
		{"*2\r\n$3\r\nSET\r\n$5000\r\n" + strings.Repeat("v", 5000) + "\r\n" + bulks("PING"), `2 ["SET"]|0 ["PING"]`},
		{"*2\r\n$3\r\nSET\r\n$5000\r\n" + strings.Repeat("v", 5000) + "xx", `error: Protocol error: expected CRLF after an argument`},
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		for name, segment := range map[string]func() int{
			"at once": func() int { return 1 << 20 }, "in bytes": func() int { return 1 }, "in pieces": func() int { return rnd.IntN(20) },
		} {
			p := &parser{limits: testLimits}
			if got := strings.Join(parsed(p, test.in, segment), "|"); got != test.want {
				t.Errorf("%.60q %s: %s, want %s", test.in, name, got, test.want)
			}
		}
	}
}

// Clients that must authenticate first may send little.
func TestStrangers(t *testing.T) {
	for in, want := range map[string]string{
		bulks("AUTH", "a"): `0 ["AUTH" "a"]`,
		"*11\r\n":          "error: Protocol error: unauthenticated multibulk length",
		"*1\r\n$16385\r\n": "error: Protocol error: unauthenticated bulk length",
		strings.Repeat("a", maxStrangerBulk+1) + "\n": "error: Protocol error: unauthenticated bulk length",
	} {
		p := &parser{limits: testLimits, stranger: true}
		if got := strings.Join(parsed(p, in, func() int { return 1000 }), "|"); got != want {
			t.Errorf("%.60q: %s, want %s", in, got, want)
		}
	}
}

// A command for which there is no memory is dropped, and what follows it is not.
func TestNoMemory(t *testing.T) {
	p := &parser{limits: limits{args: 10, bulk: 1 << 20, total: 1 << 20}}
	in := bulks("MGET", strings.Repeat("k", 10_000), strings.Repeat("l", 100_000), "m") + bulks("PING")
	var got []string
	for len(in) > 0 {
		room := p.room(func(int) bool { return false })
		if len(room) == 0 {
			t.Fatal("no room")
		}
		n := copy(room, in)
		p.w, in = p.w+n, in[n:]
		for cmd, ok, err := p.next(); ok || err != nil; cmd, ok, err = p.next() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %q", cmd.refused, cmd.args))
		}
	}
	if len(got) != 2 || got[0] != `4 ["MGET"]` || got[1] != `0 ["PING"]` || len(p.buf) > readAhead {
		t.Errorf("%q, a buffer of %d bytes", got, len(p.buf))
	}
}

// FuzzParser compares segments of any sizes with all bytes at once, and checks that the memory is bounded.
func FuzzParser(f *testing.F) {
	for _, s := range []string{bulks("GET", "db/key") + bulks("MGET", "a", "b"), "PING\r\n", "get \"a\\x41\"\n", "*1\r\n$-1\r\n", "*3\r\n$3\r\nSET\r\n$200\r\n", "*9999\r\n$1\r\na\r\n"} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		whole := parsed(&parser{limits: testLimits}, string(in), func() int { return len(in) })
		rnd := rand.New(rand.NewPCG(seed, 0))
		p := &parser{limits: testLimits}
		pieces := parsed(p, string(in), func() int { return 1 + rnd.IntN(30) })
		if !slices.Equal(whole, pieces) {
			t.Fatalf("at once: %q\nin pieces: %q", whole, pieces)
		}
		if len(p.buf) > 2*maxInline+2*leastBuffer {
			t.Fatalf("a buffer of %d bytes", len(p.buf))
		}
	})
}

// FuzzParserFrames builds commands from arguments of any bytes, and expects them back.
func FuzzParserFrames(f *testing.F) {
	f.Add([]byte("GET\x00db/key"), uint64(7))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		args := bytes.Split(in, []byte{0})
		texts := make([]string, len(args))
		for i, a := range args {
			texts[i] = string(a)
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		p := &parser{limits: limits{args: 1 << 20, bulk: 1 << 20, total: 1 << 20}}
		got := parsed(p, bulks(texts...)+bulks("PING"), func() int { return 1 + rnd.IntN(100) })
		if want := []string{fmt.Sprintf("0 %q", texts), `0 ["PING"]`}; !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// A command in a line without its end takes little memory from a client that has not authenticated, and of the others it counts.
func TestLinesWithoutEnd(t *testing.T) {
	line := []byte(strings.Repeat("x", maxInline))
	feed := func(p *parser, more func(int) bool) (err error) {
		for in := line; len(in) > 0 && err == nil; {
			n := copy(p.room(more), in)
			p.w, in = p.w+n, in[n:]
			_, _, err = p.next()
		}
		return err
	}
	p := &parser{limits: testLimits, stranger: true}
	if err := feed(p, func(int) bool { return true }); !errors.Is(err, errStrangerBulk) || len(p.buf) > readAhead {
		t.Errorf("a stranger: %v, a buffer of %d bytes", err, len(p.buf))
	}
	p = &parser{limits: testLimits}
	if err := feed(p, func(int) bool { return false }); !errors.Is(err, errInlineMemory) || len(p.buf) > readAhead {
		t.Errorf("without memory: %v, a buffer of %d bytes", err, len(p.buf))
	}
	asked := 0
	p = &parser{limits: testLimits}
	if err := feed(p, func(size int) bool { asked = size; return true }); err != nil || asked != len(p.buf) {
		t.Errorf("%v, %d bytes are counted of %d", err, asked, len(p.buf))
	}
}
