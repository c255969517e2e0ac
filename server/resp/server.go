package resp

import (
	"cmp"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"sequins/blocks"
	"sequins/internal/conns"
	"sequins/internal/limitlog"
	"sequins/internal/names"
	"sequins/reads"
)

// Server serves the Redis protocol. It is safe for concurrent use.
type Server struct {
	reads   *reads.Reader
	opts    Options
	limited *limitlog.Logger
	limits  limits
	maxKeys int
	started time.Time
	rounds  sync.Pool // of *round
	open    *conns.Set

	cursors cursors
	ids     atomic.Int64
	charged atomic.Int64 // bytes of large buffers for commands
}

// maxCharged is how many commands of the maximum size may be in memory at a time.
const maxCharged = 8

// New returns a server that reads with rd.
func New(rd *reads.Reader, o Options) *Server {
	o.Read, o.Write, o.Logger = cmp.Or(o.Read, 10*time.Second), cmp.Or(o.Write, 30*time.Second), cmp.Or(o.Logger, slog.Default())
	s := &Server{reads: rd, opts: o, started: time.Now(), open: o.Conns}
	s.limited = limitlog.New(s.opts.Logger)
	keys, bytes := rd.BatchLimits()
	s.maxKeys = keys
	// Besides the keys there are the name of the command and a db, in each key or before them.
	s.limits = limits{args: keys + 2, bulk: blocks.MaxKey + names.Max + 1, total: bytes}
	s.rounds.New = func() any { return &round{Read: rd.NewRead()} }
	return s
}

// Serve serves the connections of ln until Options.Conns is closed, and then returns nil. It returns an error if accepting fails.
// It closes ln.
func (s *Server) Serve(ln net.Listener) error { return s.open.Serve(ln, s.admit) }

// admit serves a connection, or closes it if there are too many.
func (s *Server) admit(nc net.Conn) {
	if s.open.Excess() <= 0 {
		c := newConn(nc, s, s.ids.Add(1))
		s.open.Go(&c.Base, c.serve)
		return
	}
	if _, isTCP := nc.(*net.TCPConn); isTCP { // a handshake would take time
		nc.SetWriteDeadline(time.Now().Add(time.Millisecond)) //nolint:errcheck // the text is a courtesy
		io.WriteString(nc, "-"+errMaxClients+"\r\n")          //nolint:errcheck // likewise
	}
	nc.Close() //nolint:errcheck // nothing was received from it
}

// charge counts n more bytes of buffers. It returns false, and does not count them, if there are too many.
func (s *Server) charge(n int64) bool {
	if s.charged.Add(n) > maxCharged*s.limits.total && n > 0 {
		s.charged.Add(-n)
		return false
	}
	return true
}
