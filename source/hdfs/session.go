package hdfs

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
)

// A session is one client of the library, used by one goroutine at a time: for
// one call of a Source, or for one stream of a reader.
type session struct {
	source *Source
	ctx    context.Context // whose end closes every connection
	cancel context.CancelCauseFunc
	limit  *time.Timer // after which the session is cancelled
	client *lib.Client // nil if it could not be made
	login  *login      // to Kerberos; nil without

	// How often each datanode was dialled since the last byte came.
	fruitless map[string]int

	// The library uses connections from a goroutine of its own, too.
	mu       sync.Mutex
	address  string   // of the namenode that was dialled last
	namenode net.Conn // the connection to it
	datanode net.Conn // the connection to the datanode that was dialled last
	gone     bool     // no namenode is wanted any more
	answer   refusal  // what the namenode answered last, if not what it was asked for
}

// newSession makes a session. If it is not closed or settled before, it ends
// after limit. It ends with ctx, too.
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

// do calls the library and explains its errors.
func (x *session) do(f func() error) error {
	if err := guard(f); err != nil {
		return explain(err, x.refusal())
	}
	return nil
}

// ask is do for what a namenode has to answer. The one that did is asked first
// from now on.
func (x *session) ask(f func() error) error {
	err := x.do(f)
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.source.namenodes.prefer(x.address)
	}
	return err
}

// guard makes an error of a panic: there are answers that the library cannot
// cope with, and nobody's answer may end this process.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("an answer that makes no sense: %v", p)
		}
	}()
	return f()
}

// dial connects, as long as the session goes on.
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

// maxFruitless is how often a datanode is dialled for nothing. One whose block
// ends before its end the library would ask for the rest for ever.
const maxFruitless = 3

// dialDatanode makes the connection to the next datanode. The session reads
// from one at a time, and the library leaves those open that have failed.
func (x *session) dialDatanode(_ context.Context, network, address string) (net.Conn, error) {
	if x.fruitless[address] == maxFruitless {
		return nil, fmt.Errorf("nothing came over %d connections to the datanode %s", maxFruitless, address)
	}
	x.fruitless[address]++
	x.mu.Lock()
	last := x.datanode
	x.datanode = nil
	x.mu.Unlock()
	if last != nil {
		last.Close() // a second time, mostly
	}
	c, err := x.dial(network, address)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.datanode = c
	return newDatanodeConn(c), nil
}

// failed makes sessions ask another namenode first, unless it was this side
// that wanted no answer any more.
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

// within gives the session another limit.
func (x *session) within(limit time.Duration) { x.limit.Reset(limit) }

// settle takes the limit away.
func (x *session) settle() { x.limit.Stop() }

// leaveNamenode ends the connection to the namenode, and with it the library's
// goroutine that calls it every second, whether it has to or not.
func (x *session) leaveNamenode() {
	x.mu.Lock()
	gone, c := x.gone, x.namenode
	x.gone = true
	x.mu.Unlock()
	if gone {
		return
	}
	if c != nil {
		c.Close() // first, so that the library waits for nobody
	}
	if x.client != nil {
		_ = x.client.Close() // closes it again
	}
}

// close ends the session and every connection that it made.
func (x *session) close() {
	x.settle()
	x.cancel(nil)
	x.leaveNamenode()
	if x.login != nil {
		x.source.kerberos.release(x.login)
	}
}
