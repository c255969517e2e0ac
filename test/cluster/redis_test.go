//go:build integration

package cluster

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// redisPort is where members listen for clients of Redis.
const redisPort = "6379"

// redisSession is how the sessions of clients of Redis begin.
const redisSession = "Redis"

// askRedis sends pipelines to one member until the end, and is one session: what one node answers never goes back.
func (r *recording) askRedis(m *member, number int) {
	c := &redisClient{addr: net.JoinHostPort(m.host.ip, redisPort)}
	defer c.close()
	session := fmt.Sprintf("%s %s %d", redisSession, m.name, number)
	for !r.stop.Load() {
		some := make([]checker.Read, 1+rand.IntN(8))
		for i := range some {
			some[i] = r.c.data.anyRedis()
			some[i].Node, some[i].Client, some[i].Session = m.name, number, session
		}
		r.pipeline(c, some)
		for _, read := range some {
			if read.Code != 200 && read.Code != 404 || read.Version != "" { // an answer of nulls is of an unknown version
				r.add(read)
			}
		}
		wait(some[0], 3*slowPace)
	}
}

// anyRedis asks for a key or several at random.
func (d dataset) anyRedis() checker.Read {
	if rand.IntN(2) == 0 {
		return checker.Read{Key: d.key(rand.IntN(d.keys))}
	}
	return checker.Read{Op: checker.Batch, Keys: d.anyKeys()}
}

// pipeline sends commands together and completes their reads with the replies. Those in front of a failure of the
// connection have been answered.
func (r *recording) pipeline(c *redisClient, reads []checker.Read) {
	var commands [][]string
	for _, read := range reads {
		commands = append(commands, redisCommand(read))
	}
	start := r.Now()
	replies, err := c.do(commands)
	end := r.Now()
	for i := range reads {
		read := &reads[i]
		read.Start, read.End, read.Behind = start, end, len(reads)-1
		if i >= len(replies) {
			read.Err = err.Error()
			continue
		}
		replies[i].complete(read, r.c.data)
	}
}

// redisCommand returns one of the commands for a read.
func redisCommand(read checker.Read) []string {
	hash := rand.IntN(2) == 0
	switch {
	case read.Op == checker.Get && hash:
		return []string{"HGET", db, read.Key}
	case read.Op == checker.Get:
		return []string{"GET", db + "/" + read.Key}
	case hash:
		return append([]string{"HMGET", db}, read.Keys...)
	}
	command := []string{"MGET"}
	for _, key := range read.Keys {
		command = append(command, db+"/"+key)
	}
	return command
}

// A redisReply is a value of RESP3, or an error.
type redisReply struct {
	err   string
	value any // nil, string, int64 or []any
}

// complete fills in what a read has got. Its version is that of the first value.
func (a redisReply) complete(read *checker.Read, d dataset) {
	if a.err != "" {
		read.Code, read.Body = redisStatus(a.err), a.err
		return
	}
	read.Code = 200
	values, isArray := a.value.([]any)
	switch text, isText := a.value.(string); {
	case read.Op == checker.Batch && isArray:
		for _, v := range values {
			if text, ok := v.(string); ok {
				read.Values = append(read.Values, &text)
				read.Version = cmp.Or(read.Version, d.versionOf(text))
			} else {
				read.Values = append(read.Values, nil)
			}
		}
	case read.Op == checker.Get && isText:
		read.Body, read.Version = text, d.versionOf(text)
	case read.Op == checker.Get && a.value == nil:
		read.Code = 404
	default:
		read.Err = fmt.Sprintf("the reply is %v", a.value)
	}
}

// redisStatus returns the HTTP status for the same reason.
func redisStatus(text string) int {
	for part, code := range map[string]int{
		"no node that can be reached": 502, "took too long": 504, "LOADING": 503, "TRYAGAIN this node": 503, "GONE": 412,
	} {
		if strings.Contains(text, part) {
			return code
		}
	}
	return 500
}

// A redisClient sends commands over one connection, and dials again if that is closed.
type redisClient struct {
	addr string
	conn net.Conn
	r    *bufio.Reader
}

func (c *redisClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// do sends commands in one write, once more if the node has been restarted since the last ones. It returns the replies
// before an error.
func (c *redisClient) do(commands [][]string) ([]redisReply, error) {
	used := c.conn != nil
	replies, err := c.once(commands)
	if used && len(replies) == 0 && isClosed(err) {
		return c.once(commands)
	}
	return replies, err
}

func (c *redisClient) once(commands [][]string) (replies []redisReply, err error) {
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	greetings := 0
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.addr, process.Deadline); err != nil {
			c.conn = nil
			return nil, err
		}
		c.r = bufio.NewReader(c.conn)
		greetings = 1
		commands = append([][]string{{"HELLO", "3"}}, commands...)
	}
	if err := c.send(commands); err != nil {
		return nil, err
	}
	for i := range commands {
		reply, err := c.reply()
		if err != nil {
			return replies, err
		}
		if i >= greetings {
			replies = append(replies, reply)
		} else if reply.err != "" {
			return nil, errors.New(reply.err)
		}
	}
	return replies, nil
}

func (c *redisClient) send(commands [][]string) error {
	if err := c.conn.SetDeadline(time.Now().Add(process.Deadline)); err != nil {
		return err
	}
	var b strings.Builder
	for _, command := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(command))
		for _, arg := range command {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
		}
	}
	_, err := io.WriteString(c.conn, b.String())
	return err
}

// reply reads one reply.
func (c *redisClient) reply() (a redisReply, err error) {
	kind, value, err := c.value()
	if kind == '-' {
		a.err, _ = value.(string)
	} else {
		a.value = value
	}
	return a, err
}

// value reads a value: a map is an array of keys and values.
func (c *redisClient) value() (kind byte, value any, err error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return 0, nil, fmt.Errorf("a reply begins with %q", line)
	}
	kind, line = line[0], line[1:len(line)-2]
	switch kind {
	case '+', '-':
		return kind, line, nil
	case '_':
		return kind, nil, nil
	}
	n, err := strconv.Atoi(line)
	switch {
	case err != nil:
		return 0, nil, err
	case kind == ':':
		return kind, int64(n), nil
	case kind == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return kind, string(b[:n]), err
	case kind == '%':
		n *= 2
	case kind != '*':
		return 0, nil, fmt.Errorf("a reply of kind %q", kind)
	}
	all := make([]any, n)
	for i := range all {
		if _, all[i], err = c.value(); err != nil {
			return 0, nil, err
		}
	}
	return kind, all, nil
}
