//go:build integration

package redis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// want is what each client prints.
const want = `get value-1
absent None
mget value-1,nil,value-2
hget value-3
hmget value-3,nil
exists 1 strlen 200000
pipeline 300
large True
scan 300 hlen 304
write refused
ping True
`

// check compares what a client has printed.
func check(t *testing.T, client, got string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", client, got, want)
	}
}

func TestRedisPy(t *testing.T) {
	_, addr := startSequins(t, "")
	host, port, _ := net.SplitHostPort(addr)
	python := venv.Python(t, filepath.Join("..", "web", "requirements.txt"))
	for _, protocol := range []string{"2", "3"} {
		check(t, "redis-py, RESP"+protocol, output(t, "", python, "client.py", host, port, protocol))
	}
}

func TestIORedis(t *testing.T) {
	_, addr := startSequins(t, "")
	host, port, _ := net.SplitHostPort(addr)
	output(t, "", "npm", "ci", "--no-audit", "--no-fund")
	check(t, "ioredis", output(t, "", "node", "client.mjs", host, port))
}

func TestJedis(t *testing.T) {
	_, addr := startSequins(t, "")
	host, port, _ := net.SplitHostPort(addr)
	output(t, "", "mvn", "-B", "-ntp", "-q", "-f", "jedis", "compile")
	classes, err := os.ReadFile(filepath.Join("jedis", "target", "cp.txt"))
	expect.NoError(t, err)
	for _, protocol := range []string{"2", "3"} {
		check(t, "Jedis, RESP"+protocol, output(t, "", "java", "-cp", "jedis/target/classes:"+string(classes), "Client", host, port, protocol))
	}
}

func TestGoRedis(t *testing.T) {
	_, addr := startSequins(t, "")
	for _, protocol := range []int{2, 3} {
		check(t, fmt.Sprintf("go-redis, RESP%d", protocol), readWithGo(t, goredis.NewClient(&goredis.Options{Addr: addr, Protocol: protocol, ClientName: "test"})))
	}
}

// readWithGo does with go-redis what the other clients do.
func readWithGo(t *testing.T, r *goredis.Client) string {
	defer r.Close()
	ctx := context.Background()
	var b strings.Builder
	text := func(list []any, err error) string {
		expect.NoError(t, err)
		parts := make([]string, len(list))
		for i, v := range list {
			if parts[i] = "nil"; v != nil {
				parts[i] = v.(string)
			}
		}
		return strings.Join(parts, ",")
	}
	fmt.Fprintln(&b, "get", r.Get(ctx, "words/key-001").Val())
	if err := r.Get(ctx, "words/nokey").Err(); err == goredis.Nil {
		fmt.Fprintln(&b, "absent None")
	}
	fmt.Fprintln(&b, "mget", text(r.MGet(ctx, "words/key-001", "words/nokey", "words/key-002").Result()))
	fmt.Fprintln(&b, "hget", r.HGet(ctx, "words", "key-003").Val())
	fmt.Fprintln(&b, "hmget", text(r.HMGet(ctx, "words", "key-003", "nokey").Result()))
	fmt.Fprintln(&b, "exists", r.Exists(ctx, "words/key-001", "words/nokey").Val(), "strlen", r.StrLen(ctx, "words/large").Val())
	p := r.Pipeline()
	for i := range 300 {
		p.Get(ctx, fmt.Sprintf("words/key-%03d", i))
	}
	answers, err := p.Exec(ctx)
	expect.NoError(t, err)
	right := 0
	for i, a := range answers {
		if a.(*goredis.StringCmd).Val() == fmt.Sprintf("value-%d", i) {
			right++
		}
	}
	fmt.Fprintln(&b, "pipeline", right)
	fmt.Fprintln(&b, "large", map[bool]string{true: "True"}[r.Get(ctx, "words/large").Val() == strings.Repeat("0123456789", 20_000)])
	n := 0
	for it := r.HScan(ctx, "words", 0, "key-*", 77).Iterator(); it.Next(ctx); n++ {
	}
	fmt.Fprintln(&b, "scan", n/2, "hlen", r.HLen(ctx, "words").Val())
	if err := r.Set(ctx, "words/x", "y", 0).Err(); err != nil && strings.HasPrefix(err.Error(), "ERR unknown command") {
		fmt.Fprintln(&b, "write refused")
	}
	fmt.Fprintln(&b, "ping", map[bool]string{true: "True"}[r.Ping(ctx).Val() == "PONG"])
	return b.String()
}

func TestRedisCLI(t *testing.T) {
	n, addr := startSequins(t, "")
	_, port, _ := net.SplitHostPort(addr)
	for _, test := range [][2]string{
		{"GET words/key-001", "value-1\n"}, {"-3 GET words/nokey", "\n"}, {"MGET words/key-001 words/x", "value-1\n\n"}, {"SET words/a b", "ERR unknown command 'SET', with args beginning with: 'words/a' 'b' \n\n"},
		{"--no-raw GET words/nokey", "(nil)\n"}, {"-n 0 GET words/key-001", "value-1\n"},
	} {
		if got := output(t, "", "redis-cli", append([]string{"-p", port}, strings.Fields(test[0])...)...); got != test[1] {
			t.Errorf("redis-cli %s: %q, want %q", test[0], got, test[1])
		}
	}
	if got := output(t, "GET words/key-001\nSELECT words\nGET key-002\n", "redis-cli", "-p", port); got != "value-1\nOK\nvalue-2\n" {
		t.Errorf("redis-cli on standard input: %q", got)
	}
	if got := output(t, "", "redis-cli", "-p", port, "--scan", "--pattern", "words/key-29*"); strings.Count(got, "words/key-29") != 10 {
		t.Errorf("redis-cli --scan: %q", got)
	}
	for _, pipeline := range []string{"1", "100"} {
		out, err := exec.Command("redis-benchmark", "-p", port, "-n", "2000", "-c", "10", "-P", pipeline, "-r", "100", "-q", "-e", "GET", "words/key-001").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "requests per second") || strings.Contains(string(out), "Error from server") {
			t.Errorf("redis-benchmark: %v\n%s", err, out)
		}
	}
	if m := n.Metrics(t); !strings.Contains(m, `sequins_requests_total{code="200",db="words",route="redis"}`) {
		t.Error("the metrics have no reads of the Redis protocol")
	}
}

// Tokens and certificates are those of HTTP.
func TestTLSAndTokens(t *testing.T) {
	dir := t.TempDir()
	key, cert, tokens := filepath.Join(dir, "key.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "tokens")
	output(t, "", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
		"-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
	expect.NoError(t, os.WriteFile(tokens, []byte("reader abcdefghijklmnopqrstuvwx words\n"), 0o600))
	_, addr := startSecure(t, fmt.Sprintf("[tls]\ncertificate = %q\nkey = %q\nca = %q\n[auth]\ntokens_file = %q\n", cert, key, cert, tokens))
	_, port, _ := net.SplitHostPort(addr)
	cli := func(args ...string) string {
		return output(t, "", "redis-cli", append([]string{"--tls", "--cacert", cert, "-p", port, "--no-auth-warning"}, args...)...)
	}
	process.Eventually(t, "the token reads", func() bool { return cli("-a", "abcdefghijklmnopqrstuvwx", "GET", "words/key-001") == "value-1\n" })
	if got := cli("--user", "reader", "--pass", "abcdefghijklmnopqrstuvwx", "GET", "other/x"); !strings.HasPrefix(got, "NOPERM") {
		t.Errorf("another db: %q", got)
	}
	if got := cli("GET", "words/key-001"); !strings.HasPrefix(got, "NOAUTH") {
		t.Errorf("without a token: %q", got)
	}
}
