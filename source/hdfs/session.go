package hdfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	lib "github.com/colinmarc/hdfs/v2"
)

// session is one client of the library, used by one goroutine at a time: for one
// call of a Source, or one stream of a reader.
type session struct {
	source *Source
	ctx    context.Context // closes all connections when it ends
	cancel context.CancelFunc
	client *lib.Client // nil if it could not be created
	login  *login      // nil without Kerberos

	// How often each datanode was dialed since the last byte was received.
	fruitless map[string]int

	sums *blockSums // of a session for checksums, once the file is open; nil otherwise

	datanode net.Conn // connection to the last dialed datanode; may be nil

	// The library also calls namenodes from a goroutine of its own.
	mu       sync.Mutex
	address  string   // of the last dialed namenode
	namenode net.Conn // its connection
	gone     bool     // the namenode is not needed any more
	answer   refusal  // the namenode's last response, if it was an error
}

func (s *Source) newSession(ctx context.Context) (*session, error) {
	x := &session{source: s, fruitless: map[string]int{}}
	x.ctx, x.cancel = context.WithCancel(ctx)
	if err := x.connect(); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *session) connect() (err error) {
	s := x.source
	o := s.library
	o.Addresses = s.addresses()
	o.NamenodeDialFunc, o.DatanodeDialFunc = x.dialNamenode, x.dialDatanode
	if s.kerberos != nil {
		ctx, cancel := context.WithTimeout(x.ctx, s.retryFor)
		defer cancel()
		if x.login, o.Addresses, err = s.kerberos.tickets(ctx, o.Addresses); err != nil {
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

// ask is do for calls to a namenode. It notes whether the namenode has answered, unless this side has ended the call.
func (x *session) ask(f func() error) error {
	err := x.do(f)
	_, refused := errors.AsType[final](err)
	if ok := err == nil || refused; ok || x.ctx.Err() == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.source.answered(x.address, ok)
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
		return nil, fmt.Errorf("%s: %w", address, x.ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return newConn(x.ctx, raw, x.source.timeout), nil
}

func (x *session) dialNamenode(_ context.Context, network, address string) (net.Conn, error) {
	c, err := x.dial(network, address)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.address = address
	if err != nil {
		return nil, err
	}
	if x.gone {
		c.Close()
		return nil, net.ErrClosed
	}
	x.namenode = c
	return newNamenodeConn(c, x.answered), nil
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
	if x.datanode != nil {
		x.datanode.Close() // often already closed
		x.datanode = nil
	}
	c, err := x.dial(network, address)
	if err != nil {
		return nil, err
	}
	x.datanode = c
	d := newDatanodeConn(c)
	d.sums = x.sums
	return d, nil
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
	x.cancel()
	x.leaveNamenode()
	if x.login != nil {
		x.source.kerberos.release(x.login)
	}
}
