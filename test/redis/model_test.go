//go:build integration

package redis

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// raw is a connection that answers are read from as they are.
type raw struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	expect.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	return &raw{c, bufio.NewReader(c)}
}

func command(args ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return s
}

// reply returns the bytes of one answer.
func (c *raw) reply(t *testing.T) string {
	t.Helper()
	line, err := c.r.ReadString('\n')
	expect.NoError(t, err)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch {
	case line[0] == '$' && n >= 0:
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		expect.NoError(t, err)
		line += string(b)
	case line[0] == '*':
		for range n {
			line += c.reply(t)
		}
	}
	return line
}

// fill gives redis the records, as strings and as a hash.
func fill(t *testing.T, c *raw) {
	t.Helper()
	for k, v := range records() {
		io.WriteString(c, command("SET", "words/"+k, v)+command("HSET", "words", k, v))
		if a, b := c.reply(t), c.reply(t); a != "+OK\r\n" || b != ":1\r\n" {
			t.Fatalf("filling redis: %q %q", a, b)
		}
	}
}

// randomCommand returns a command whose answer is the same in both, in RESP2 and RESP3.
func randomCommand(rnd *rand.Rand, keys []string) []string {
	field := func() string {
		if rnd.IntN(5) == 0 {
			return "nokey" + strconv.Itoa(rnd.IntN(10))
		}
		return keys[rnd.IntN(len(keys))]
	}
	several := func(prefix string, first ...string) []string {
		for range 1 + rnd.IntN(8) {
			first = append(first, prefix+field())
		}
		return first
	}
	switch rnd.IntN(21) {
	case 0, 1, 2:
		return []string{"GET", "words/" + field()}
	case 3:
		return several("words/", "mget")
	case 4:
		return several("words/", "EXISTS")
	case 5:
		return []string{"STRLEN", "words/" + field()}
	case 6:
		return []string{"TYPE", "words/" + field()}
	case 7:
		return []string{"TTL", "words/" + field()}
	case 8:
		return []string{"PTTL", "words/" + field()}
	case 9:
		return []string{"HGET", "words", field()}
	case 10:
		return several("", "HMGET", "words")
	case 11:
		return []string{"HEXISTS", "words", field()}
	case 12:
		return []string{"HSTRLEN", "words", field()}
	case 13:
		return []string{"HLEN", "words"}
	case 14:
		return []string{"PING", "hello\r\nworld"}[:1+rnd.IntN(2)]
	case 15:
		return []string{"ECHO", "words"}
	case 16:
		return slices.Repeat([]string{"GET"}, 1+2*rnd.IntN(2))
	case 17:
		return []string{"nosuch\ncommand", field(), strings.Repeat("x", rnd.IntN(200)), field()}[:1+rnd.IntN(4)]
	case 18:
		return []string{"SELECT", "0"}
	case 19:
		return []string{"CLIENT", []string{"GETNAME", "FOO", "SETNAME"}[rnd.IntN(3)]}
	}
	return []string{[]string{"STRLEN", "HGET", "HLEN", "EXISTS", "MGET", "HMGET"}[rnd.IntN(6)]} // too few arguments
}

// Random commands, in pipelines of random length and in segments of random size, have the answers of redis-server.
func TestModel(t *testing.T) {
	_, ours := startSequins(t, "")
	theirs := startRedis(t)
	a, b := dial(t, ours), dial(t, theirs)
	fill(t, b)
	keys := slices.Sorted(func(yield func(string) bool) {
		for k := range records() {
			if !yield(k) {
				return
			}
		}
	})
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all [][]string
		var in strings.Builder
		for range 1 + rnd.IntN(60) {
			cmd := randomCommand(rnd, keys)
			all = append(all, cmd)
			in.WriteString(command(cmd...))
		}
		io.WriteString(b, in.String())
		go func() {
			for rest := in.String(); rest != ""; {
				n := min(1+rnd.IntN(500), len(rest))
				io.WriteString(a, rest[:n])
				rest = rest[n:]
			}
		}()
		for _, cmd := range all {
			if got, want := a.reply(t), b.reply(t); got != want {
				t.Fatalf("seed %d: %.200q: %.300q, redis: %.300q", seed, cmd, got, want)
			}
		}
	}
}

// What is no command has the answers of redis-server.
func TestProtocolErrors(t *testing.T) {
	_, ours := startSequins(t, "")
	theirs := startRedis(t)
	for _, in := range []string{
		"*1\r\n$-1\r\n", "*1\r\n$9223372036854775808\r\n", "*1\r\n$536870913\r\n", "*a\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "*1\r\nPING\r\n", "*2147483648\r\n", "*1048577\r\n",
		"*0\r\n*-1\r\nPING\r\nQUIT\r\n", "\r\n\n  \r\nPING\r\nQUIT\r\n", "PING\nQUIT\n",
		strings.Repeat("x", 70_000), "*1\r\n$" + strings.Repeat("1", 100) + "\r\n", "*01\r\n", "*1\r\n$04\r\nPING\r\n", "*1\r\n$+4\r\nPING\r\n", "POST / HTTP/1.1\r\n\r\n",
	} {
		var answers [2]string
		for i, addr := range []string{ours, theirs} {
			c := dial(t, addr)
			io.WriteString(c, in)
			c.Conn.(*net.TCPConn).CloseWrite()
			got, _ := io.ReadAll(c) // redis may close it with a reset
			answers[i] = string(got)
		}
		if answers[0] != answers[1] && len(answers[1]) > 0 {
			t.Errorf("%.60q: %.200q, redis: %.200q", in, answers[0], answers[1])
		}
	}
}
