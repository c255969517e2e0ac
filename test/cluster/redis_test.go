//go:build integration

package cluster

import (
	"bufio"
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
	var reads []checker.Read
	session := fmt.Sprintf("%s %s %d", redisSession, m.name, number)
	for !r.stop.Load() {
		some := make([]checker.Read, 1+rand.IntN(8))
		for i := range some {
			some[i] = r.c.data.anyRedis()
			some[i].Node, some[i].Client, some[i].Session = m.name, number, session
		}
		r.pipeline(c, some)
		reads = append(reads, some...)
		wait(some[0], 3*slowPace)
	}
	r.Add(reads)
}

// roamRedis sends one command to any of the members, over a connection of its own that requires the newest version seen.
func (o *roamer) roamRedis() {
	defer func() { o.r.Add(o.reads) }()
	newest := ""
	for !o.r.stop.Load() {
		m := o.members[rand.IntN(len(o.members))]
		c := &redisClient{addr: net.JoinHostPort(m.host.ip, redisPort), atLeast: newest}
		some := []checker.Read{o.r.c.data.anyRedis()}
		some[0].Node, some[0].Client, some[0].Session, some[0].AtLeast = m.name, o.number, fmt.Sprintf("%s roamer %d", redisSession, o.number), newest
		o.r.pipeline(c, some)
		c.close()
		o.reads = append(o.reads, some...)
		newest = max(newest, some[0].Version)
		wait(some[0], slowPace)
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
		replies[i].complete(read)
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
	version string // from the attribute
	err     string
	value   any // nil, string, int64 or []any
}

// complete fills in what a read has got.
func (a redisReply) complete(read *checker.Read) {
	read.Version = a.version
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
			} else {
				read.Values = append(read.Values, nil)
			}
		}
	case read.Op == checker.Get && isText:
		read.Body = text
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
	addr    string
	atLeast string // the version required of the db; "" for none
	conn    net.Conn
	r       *bufio.Reader
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
		hello := [][]string{{"HELLO", "3"}, {"CLIENT", "SETINFO", "SEQUINS-ATTRIBUTES", "ON"}}
		if c.atLeast != "" {
			hello = append(hello, []string{"CLIENT", "SETINFO", "SEQUINS-AT-LEAST", db + "/" + c.atLeast})
		}
		greetings = len(hello)
		commands = append(hello, commands...)
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

// reply reads one reply with its attribute.
func (c *redisClient) reply() (a redisReply, err error) {
	for {
		kind, value, err := c.value()
		switch {
		case err != nil:
			return a, err
		case kind == '|':
			a.version = versionIn(value)
			continue
		case kind == '-':
			a.err, _ = value.(string)
			return a, nil
		}
		a.value = value
		return a, nil
	}
}

// versionIn returns the version of the db in the attribute sequins-versions.
func versionIn(attributes any) string {
	pairs, _ := attributes.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		versions, _ := pairs[i+1].([]any)
		if pairs[i] == "sequins-versions" && len(versions) == 2 && versions[0] == db {
			version, _ := versions[1].(string)
			return version
		}
	}
	return ""
}

// value reads a value: a map or an attribute is an array of keys and values.
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
	case kind == '%', kind == '|':
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
