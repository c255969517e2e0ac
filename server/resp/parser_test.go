package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
)

var testLimits = limits{args: 8, bulk: 100, total: 300}

// parsed feeds a parser the bytes of s in the given segments, and returns what it makes of them as text.
func parsed(p *parser, s string, segment func() int) []string {
	var got []string
	add := func() bool {
		for {
			args, ok, err := p.next()
			if err != nil {
				got = append(got, "error: "+strings.TrimPrefix(err.Error(), "ERR "))
				return false
			}
			if !ok {
				return true
			}
			got = append(got, fmt.Sprintf("%q", args))
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
		{bulks("GET", "a"), `["GET" "a"]`},
		{bulks("GET", "") + bulks("PING"), `["GET" ""]|["PING"]`},
		{bulks("a\r\n$3\r\n"), `["a\r\n$3\r\n"]`},
		{"PING\r\n", `["PING"]`},
		{"PING\n\r\n\n  \r\n*0\r\n*-1\r\nGET a\n", `["PING"]|["GET" "a"]`},
		{"get a\x0b \xa0b\xff\t c \r\n", `["get" "a\v" "\xa0b\xff" "c"]`},
		{`get "a b"` + "\r\n", "error: Protocol error: quotes in an inline request"},
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
		{bulks("GET", long[1:]) + bulks("GET", long), `["GET" "` + long[1:] + `"]|error: an argument is too long: the limit is that of a key, and 8 KiB before AUTH`},
		{bulks(slices.Repeat([]string{"a"}, 9)...), "error: too many arguments in one command: the limit is that of keys, and 10 before AUTH"},
		{bulks("MGET", long[1:], long[1:], long[1:]), "error: the arguments are too large: the limit is batch.max_bytes, and 8 KiB before AUTH"},
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

// A command that has no memory ends with an error when its memory is needed, and not before.
func TestNoMemory(t *testing.T) {
	p := &parser{limits: limits{args: 10, bulk: 1 << 20, total: 1 << 20}}
	in := bulks("PING") + bulks("MGET", strings.Repeat("k", 10_000), strings.Repeat("l", 100_000), "m")
	commands := 0
	for len(in) > 0 {
		n := copy(p.room(func(int) bool { return false }), in)
		p.w, in = p.w+n, in[n:]
		_, ok, err := p.next()
		for ; ok; _, ok, err = p.next() {
			commands++
		}
		if err == errNoMemory {
			break
		}
		expect.NoError(t, err)
	}
	if commands != 1 || len(in) == 0 || len(p.buf) > readAhead {
		t.Errorf("%d commands, %d bytes left, a buffer of %d bytes", commands, len(in), len(p.buf))
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
		if len(p.buf) > 2*leastBuffer {
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
		if want := []string{fmt.Sprintf("%q", texts), `["PING"]`}; !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// A client that must authenticate never needs a buffer that is counted, whatever it sends.
func TestStrangers(t *testing.T) {
	arg := strings.Repeat("s", 8<<10/9)
	for _, in := range []string{bulks(arg, arg, arg, arg, arg, arg, arg, arg, arg), bulks(strings.Repeat("s", 8<<10)), strings.Repeat("x", maxInline-1) + "\n", bulks("AUTH", "token")} {
		p := &parser{limits: strangerLimits}
		for in = strings.Repeat(in, 20); len(in) > 0; {
			n := copy(p.room(func(int) bool { t.Fatal("the buffer is counted"); return false }), in)
			p.w, in = p.w+n, in[n:]
			_, ok, err := p.next()
			for ; ok; _, ok, err = p.next() {
			}
			expect.NoError(t, err)
		}
	}
}

// A line without an end takes no more memory than the longest line.
func TestLineWithoutEnd(t *testing.T) {
	p := &parser{limits: testLimits}
	got := parsed(p, strings.Repeat("x", 1<<20), func() int { return 100 })
	if len(got) != 1 || got[0] != "error: Protocol error: too big inline request" || len(p.buf) > leastBuffer {
		t.Errorf("%q, a buffer of %d bytes", got, len(p.buf))
	}
}
