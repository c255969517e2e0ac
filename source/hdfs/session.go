package hdfs

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
)

// session is one client of the library, used by one goroutine at a time: for one
// call of a Source, or one stream of a reader.
type session struct {
	source *Source
	ctx    context.Context // closes all connections when it ends
	cancel context.CancelCauseFunc
	limit  *time.Timer // cancels the session
	client *lib.Client // nil if it could not be created
	login  *login      // nil without Kerberos

	// How often each datanode was dialed since the last byte was received.
	fruitless map[string]int

	sums *blockSums // of a session for checksums, once the file is open; nil otherwise

	// The library also uses connections from a goroutine of its own.
	mu       sync.Mutex
	address  string   // of the last dialed namenode
	namenode net.Conn // its connection
	datanode net.Conn // connection to the last dialed datanode
	gone     bool     // the namenode is not needed any more
	answer   refusal  // the namenode's last response, if it was an error
}

// newSession returns a session that ends with ctx, or after limit if it is
// neither closed nor settled before.
func (s *Source) newSession(ctx context.Context, limit time.Duration) (*session, error) {
	x := &session{source: s, fruitless: map[string]int{}}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.limit = time.AfterFunc(limit, func() { x.cancel(errLimit) })
	if err := x.connect(); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *session) connect() (err error) {
	s := x.source
	o := s.library
	o.Addresses = s.namenodes.addresses()
	o.NamenodeDialFunc, o.DatanodeDialFunc = x.dialNamenode, x.dialDatanode
	if s.kerberos != nil {
		if x.login, o.Addresses, err = s.kerberos.tickets(x.ctx, o.Addresses); err != nil {
			return err
		}
		o.KerberosClient = x.login.client
	}
	return x.do(func() error {
		x.client, err = lib.NewClient(o)
		return err
	})
}

// do calls the library and converts its errors.
func (x *session) do(f func() error) error {
	if err := guard(f); err != nil {
		return explain(err, x.refusal())
	}
	return nil
}

// ask is do for calls to a namenode. A namenode that answers is tried first from
// then on.
func (x *session) ask(f func() error) error {
	err := x.do(f)
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.source.namenodes.prefer(x.address)
	}
	return err
}

// guard converts a panic into an error: some responses make the library panic.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed response: %v", p)
		}
	}()
	return f()
}

// dial connects while the session lives.
func (x *session) dial(network, address string) (*conn, error) {
	raw, err := x.source.dial(x.ctx, network, address)
	if err != nil && x.ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", address, context.Cause(x.ctx))
	}
	if err != nil {
		return nil, err
	}
	return newConn(x.ctx, raw, x.source.timeout), nil
}

func (x *session) dialNamenode(_ context.Context, network, address string) (net.Conn, error) {
	c, err := x.dial(network, address)
	if err != nil {
		x.failed(address)
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		c.Close()
		return nil, net.ErrClosed
	}
	x.address, x.namenode = address, c
	return newNamenodeConn(c, x.answered, func() { x.failed(address) }), nil
}

// maxFruitless bounds how often a datanode is dialed without receiving a byte. If
// a block is shorter than expected, the library would ask for the rest forever.
const maxFruitless = 3

// dialDatanode connects to the next datanode. The session reads from one at a
// time; the library does not close failed connections.
func (x *session) dialDatanode(_ context.Context, network, address string) (net.Conn, error) {
	if x.sums != nil && x.sums.n > 0 {
		clear(x.fruitless) // a file has many blocks
	}
	if x.fruitless[address] == maxFruitless {
		return nil, fmt.Errorf("no data over %d connections to the datanode %s", maxFruitless, address)
	}
	x.fruitless[address]++
	x.mu.Lock()
	last := x.datanode
	x.datanode = nil
	x.mu.Unlock()
	if last != nil {
		last.Close() // often already closed
	}
	c, err := x.dial(network, address)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.datanode = c
	d := newDatanodeConn(c)
	d.sums = x.sums
	return d, nil
}

// failed makes sessions try another namenode first, unless this side has ended
// the exchange.
func (x *session) failed(address string) {
	x.mu.Lock()
	gone := x.gone
	x.mu.Unlock()
	if !gone && context.Cause(x.ctx) != context.Canceled {
		x.source.namenodes.avoid(address)
	}
}

func (x *session) answered(r refusal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = r
}

func (x *session) refusal() refusal {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answer
}

func (x *session) lastDatanode() net.Addr {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.datanode == nil {
		return nil
	}
	return x.datanode.RemoteAddr()
}

// within changes the session's limit.
func (x *session) within(limit time.Duration) { x.limit.Reset(limit) }

// settle removes the limit.
func (x *session) settle() { x.limit.Stop() }

// leaveNamenode closes the connection to the namenode, and with it the library's
// goroutine that calls the namenode every second.
func (x *session) leaveNamenode() {
	x.mu.Lock()
	gone, c := x.gone, x.namenode
	x.gone = true
	x.mu.Unlock()
	if gone {
		return
	}
	if c != nil {
		c.Close() // first, so that the library does not block
	}
	if x.client != nil {
		_ = x.client.Close() // closes it again
	}
}

// close ends the session and closes all its connections.
func (x *session) close() {
	x.settle()
	x.cancel(nil)
	x.leaveNamenode()
	if x.login != nil {
		x.source.kerberos.release(x.login)
	}
}
