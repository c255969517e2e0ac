package hdfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"sequins/test/expect"
)

// A cluster is the namenodes that a test plays, by address. It connects by
// pipes, so that it works under a clock of its own.
type cluster struct {
	mu    sync.Mutex
	nodes map[string]func(net.Conn)
	calls []string // that were dialled
	open  map[string]int
	serve sync.WaitGroup // the connections, each until the node has noticed its end
}

func (c *cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	serve := c.nodes[address]
	c.calls = append(c.calls, address)
	c.mu.Unlock()
	if serve == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	c.count(address, 1)
	c.serve.Go(func() {
		defer c.count(address, -1)
		defer there.Close()
		serve(there)
	})
	return here, nil
}

func (c *cluster) count(address string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[address] += n
}

// connected returns how many connections to an address there are.
func (c *cluster) connected(address string) int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[address]
}

// dialled returns the addresses dialed since the last call.
func (c *cluster) dialled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

func (c *cluster) set(address string, serve func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[address] = serve
}

// source returns one of the namenodes a:1 and b:2.
func (c *cluster) source(t *testing.T) *Source {
	t.Helper()
	s, err := New(Options{URL: "hdfs://a:1/data", Dial: c.Dial, Timeout: timeout, RetryFor: retryFor})
	expect.NoError(t, err)
	s.namenodes = []string{"a:1", "b:2"}
	return s
}

// The limits of these sources. Once a second the library takes the lock that a
// call holds, and a clock of the test's own stands still meanwhile: no call may
// hold it for so long.
const (
	timeout  = 800 * time.Millisecond
	retryFor = time.Minute
)

// silent accepts everything and sends nothing.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// says reads the beginning of a request and sends something else.
func says(answer string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 10))
		go io.Copy(io.Discard, c) //nolint:errcheck // it ends with the pipe
		_, _ = io.WriteString(c, answer)
	}
}

// answer is a namenode's response to a method: a message or an exception.
type answer struct {
	message   []byte
	exception string
	text      string
	callID    uint64 // 0 is that of the request
	after     time.Duration
}

// answers plays a namenode.
func answers(to func(method string) answer) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		if _, err := io.ReadFull(r, make([]byte, 7)); err != nil {
			return
		}
		for {
			method, id, err := readRequest(r)
			if err != nil {
				return
			}
			if method == "" { // the beginning of the connection
				continue
			}
			a := to(method)
			time.Sleep(a.after)
			if a.callID != 0 {
				id = a.callID
			}
			if _, err := c.Write(a.frame(id)); err != nil {
				return
			}
		}
	}
}

func always(a answer) func(net.Conn) { return answers(func(string) answer { return a }) }

func throws(class, text string) func(net.Conn) { return always(answer{exception: class, text: text}) }

func (a answer) frame(id uint64) []byte {
	header := number(nil, 1, id)
	if a.exception == "" {
		header = number(header, fieldStatus, 0)
	} else {
		header = text(text(number(header, fieldStatus, 1), fieldException, a.exception), fieldMessage, a.text)
	}
	body := protowire.AppendBytes(nil, header)
	if a.exception == "" {
		body = protowire.AppendBytes(body, a.message)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// readRequest reads a request: its method, which the first, about the
// connection, has none of, and its id.
func readRequest(r io.Reader) (method string, id uint64, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", 0, err
	}
	b := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(r, b); err != nil {
		return "", 0, err
	}
	header, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return "", 0, errors.New("no header")
	}
	call := protowire.DecodeZigZag(field(header, 3).number)
	if call < 0 {
		return "", 0, nil
	}
	request, n := protowire.ConsumeBytes(b[n:])
	if n < 0 {
		return "", 0, errors.New("no request")
	}
	return string(field(request, 1).bytes), uint64(call), nil
}

type value struct {
	number uint64
	bytes  []byte
}

func field(b []byte, want protowire.Number) (v value) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if num == want && typ == protowire.VarintType {
			v.number, _ = protowire.ConsumeVarint(b)
		} else if num == want {
			v.bytes, _ = protowire.ConsumeBytes(b)
		}
		b = b[size:]
	}
	return v
}

func number(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func text[T string | []byte](b []byte, num protowire.Number, v T) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), []byte(v))
}

const (
	typeDir     = 1
	typeSymlink = 3
)

// stat is the HdfsFileStatusProto of something.
func stat(kind uint64, name string) []byte {
	b := number(nil, 1, kind)
	b = text(b, 2, name)
	b = number(b, 3, 1000)
	b = text(b, 4, number(nil, 1, 0o755))
	b = text(text(b, 5, "me"), 6, "us")
	b = number(number(b, 7, 1_700_000_000_000), 8, 0)
	return number(b, 13, 4711)
}

// tree simulates a namenode with one directory, which it returns for every path.
func tree(entries ...[]byte) func(net.Conn) {
	return answers(func(method string) answer {
		switch method {
		case "getFileInfo":
			return answer{message: text(nil, 1, stat(typeDir, ""))}
		case "getListing":
			var listing []byte
			for _, e := range entries {
				listing = text(listing, 1, e)
			}
			return answer{message: text(nil, 1, number(listing, 2, 0))}
		}
		return answer{exception: "java.lang.UnsupportedOperationException", text: fmt.Sprint("no ", method)}
	})
}
