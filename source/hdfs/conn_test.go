package hdfs

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

func TestParseRefusal(t *testing.T) {
	header := func(b []byte) []byte { return answer{exception: "x.Y", text: "why\n\tat Z"}.frame(7)[4:] }(nil)
	long := answer{exception: "x.Y", text: strings.Repeat("é", 100_000)}.frame(7)[4:]
	tests := []struct {
		name  string
		frame []byte
		want  refusal
		ok    bool
	}{
		{"an exception", header, refusal{"x.Y", "why"}, true},
		{"cut off in the message", header[:len(header)-6], refusal{"x.Y", "why"}, true},
		{"a long message, of which the beginning is here", long[:peeked], refusal{"x.Y", strings.Repeat("é", maxMessage/2)}, true},
		{"control characters", answer{exception: "x\x1b[2J", text: "a\x00b\r\xff"}.frame(7)[4:], refusal{"x[2J", "ab"}, true},
		{"success", answer{message: []byte("x")}.frame(7)[4:], refusal{}, false},
		{"nothing", nil, refusal{}, false},
		{"no header", []byte{0}, refusal{}, false},
		{"a header that is not there", []byte{200, 1}, refusal{}, false},
		{"a length without end", []byte(strings.Repeat("\xff", 20)), refusal{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseRefusal(tt.frame); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %+v, %v; want %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// The part of a namenode's message that is shown is short and printable.
func FuzzParseRefusal(f *testing.F) {
	f.Add(answer{exception: "x.Y", text: "why\n\tat Z"}.frame(7)[4:])
	f.Add(answer{message: []byte("x")}.frame(7)[4:])
	f.Add([]byte{3, 0x22, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, _ := parseRefusal(frame)
		for _, s := range []string{r.class, r.message} {
			if len(s) > maxMessage || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", s)
			}
		}
	})
}

// FuzzNamenodeConn: the library sees only complete frames, in order, none of them
// too long.
func FuzzNamenodeConn(f *testing.F) {
	f.Add(append(answer{message: []byte("hello")}.frame(1), answer{exception: "x", text: "y"}.frame(2)...), uint8(3))
	f.Add([]byte("HTTP/1.1 400"), uint8(100))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1}, uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, step uint8) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			_, _ = there.Write(stream)
		}()
		c := newNamenodeConn(newConn(t.Context(), here, time.Minute), func(refusal) {})
		defer c.Close()
		var got []byte
		p := make([]byte, int(step)+1)
		for {
			n, err := c.Read(p)
			got = append(got, p[:n]...)
			if err != nil {
				break
			}
		}
		if want := frames(stream); string(got) != string(want) {
			t.Errorf("of %q came %q, want %q", stream, got, want)
		}
	})
}

// frames returns what may be passed on of a truncated stream: frames of valid
// length, including a partial last one if its header is complete.
func frames(stream []byte) []byte {
	var n int
	for len(stream)-n >= 4 {
		length := int(binary.BigEndian.Uint32(stream[n:]))
		if length > maxFrame || len(stream)-n < min(4+length, peeked) {
			break
		}
		n = min(n+4+length, len(stream))
	}
	return stream[:n]
}

// inBubble runs a test with both ends of a connection that has a timeout of a
// minute.
func inBubble(t *testing.T, run func(t *testing.T, c *conn, there net.Conn, cancel context.CancelCauseFunc)) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		ctx, cancel := context.WithCancelCause(t.Context())
		c := newConn(ctx, here, time.Minute)
		run(t, c, there, cancel)
		c.Close()
		there.Close()
		time.Sleep(time.Minute) // until who writes has seen it
	})
}

func TestDatanodeThatTakesItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, c *conn, there net.Conn, _ context.CancelCauseFunc) {
		go func() {
			for range 20 {
				time.Sleep(50 * time.Second)
				_, _ = there.Write(append([]byte("\x04abcd"), make([]byte, leastData)...))
			}
		}()
		d := newDatanodeConn(c)
		start := time.Now()
		if n, err := io.ReadFull(d, make([]byte, 20*(5+leastData))); err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		took(t, start, 1000*time.Second, 1000*time.Second)
		_, err := d.Read(make([]byte, 1))
		wantError(t, err, os.ErrDeadlineExceeded)
		took(t, start, 1060*time.Second, 1060*time.Second)
	})
}

func TestNamenodeThatTricklesAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *conn, there net.Conn, _ context.CancelCauseFunc) {
		n := newNamenodeConn(c, func(refusal) {})
		go func() {
			_, _ = there.Read(make([]byte, 10))
			for {
				time.Sleep(10 * time.Second)
				if _, err := there.Write([]byte("\x00")); err != nil {
					return
				}
			}
		}()
		start := time.Now()
		if _, err := n.Write([]byte("request")); err != nil {
			t.Fatal(err)
		}
		_ = n.SetDeadline(time.Now().Add(time.Hour)) // overridden by the connection's own deadlines
		_, err := io.ReadFull(n, make([]byte, 100))
		wantError(t, err, os.ErrDeadlineExceeded)
		took(t, start, time.Minute, time.Minute)
	})
}

func TestConnEndsWithItsContext(t *testing.T) {
	why := errors.New("why")
	inBubble(t, func(t *testing.T, c *conn, there net.Conn, cancel context.CancelCauseFunc) {
		time.AfterFunc(time.Second, func() { cancel(why) })
		start := time.Now()
		_, err := newDatanodeConn(c).Read(make([]byte, 1))
		wantError(t, err, why)
		took(t, start, time.Second, time.Second)
		_, err = c.Write([]byte("x"))
		wantError(t, err, why)
	})
}

// The first message of a datanode is checked before the library allocates its
// length.
func TestWhatIsNoDatanode(t *testing.T) {
	for name, says := range map[string]string{
		"a long message":          "\xff\xff\xff\xff\x7f",
		"a length without an end": "\xff\xff\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *conn, there net.Conn, _ context.CancelCauseFunc) {
				go func() { _, _ = io.WriteString(there, says) }()
				_, err := newDatanodeConn(c).Read(make([]byte, 5))
				wantError(t, err, errNoDatanode)
			})
		})
	}
}
