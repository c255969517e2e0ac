package resp

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/internal/conns"
	"sequins/reads"
	"sequins/server/auth"
	"sequins/test/expect"
	"sequins/version"
)

type noCatalog struct{}

func (noCatalog) Set([]byte) *version.Set { return nil }
func (noCatalog) MayExist([]byte) bool    { return false }

// sink is a connection whose client reads everything.
type sink struct {
	net.Conn
	written func()
}

func (s sink) Write(p []byte) (int, error)        { s.written(); return len(p), nil }
func (s sink) SetWriteDeadline(t time.Time) error { return nil }

func connTo(t *testing.T, o Options, nc net.Conn) *conn {
	t.Helper()
	o.Conns = new(conns.Set)
	rd := reads.New(noCatalog{}, reads.Options{})
	t.Cleanup(rd.Stop)
	return newConn(nc, New(rd, o), 1)
}

// The answers of a round are sent while it goes on, whatever the commands are.
func TestAnswersInPieces(t *testing.T) {
	for _, line := range []string{"CLIENT GETNAME", "PING", "PING " + strings.Repeat("p", 900), "nothing", "GET k", "INFO", "HELLO 3"} {
		var c *conn
		peak := 0
		c = connTo(t, Options{}, sink{written: func() { peak = max(peak, len(c.w.out)) }})
		c.Conn = addressed{c.Conn}
		c.p.buf = []byte(strings.Repeat(line+"\r\n", 20_000))
		c.p.w = len(c.p.buf)
		if c.answer(); peak == 0 || peak > writeChunk+8<<10 {
			t.Errorf("%.20s: %d bytes of answers were collected", line, peak)
		}
	}
}

type addressed struct{ net.Conn }

func (addressed) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// A token that is taken out of the file while a client sends it is unknown.
func TestTokenTakenAway(t *testing.T) {
	const token = "abcdefghijklmnopqrstuvwx"
	file := filepath.Join(t.TempDir(), "tokens")
	reload := func(tokens *auth.Tokens, doc string) {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Error(err)
		}
		if tokens == nil {
			return
		}
		if err := tokens.Reload(); err != nil {
			t.Error(err)
		}
	}
	without := "all  zyxwvutsrqponmlkjihgfedc *\n"
	with := without + "one " + token + " names\n"
	reload(nil, with)
	tokens, err := auth.Open(file)
	expect.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50 {
			reload(tokens, without)
			reload(tokens, with)
		}
	}()
	c := connTo(t, Options{Tokens: tokens}, nil)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			if text := c.authenticate([]byte("one"), []byte(token)); text != "" && text != errWrongPass {
				t.Fatal(text)
			}
		}
	}
}
