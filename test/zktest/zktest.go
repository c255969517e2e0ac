// Package zktest has a server for tests that frames its answers as ZooKeeper does, and answers what the test wants.
package zktest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// The operations that clients ask for.
const (
	Create   = 1
	Delete   = 2
	Exists   = 3
	GetData  = 4
	Ping     = 11
	Children = 12
	Multi    = 14
	SetAuth  = 100
	End      = -11
)

// An Answer is what a server sends for a request: code 0 and the body of the reply, or another code. Raw is sent as it is instead.
type Answer struct {
	Code int32
	Body []byte
	Raw  []byte
	None bool // no answer
}

// Server is a server that a test scripts.
type Server struct {
	Addr        string
	Connections atomic.Int64
	Requests    atomic.Int64 // heartbeats are not counted
	Xid         atomic.Int32 // of the last request
	answer      func(op int32, body []byte) Answer

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Serve answers at addr, a port of 127.0.0.1 or "127.0.0.1:0", until the test ends. Heartbeats and the handshake are answered as
// ZooKeeper does.
func Serve(t testing.TB, addr string, answer func(op int32, body []byte) Answer) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: ln.Addr().String(), answer: answer, conns: map[net.Conn]bool{}}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			s.Connections.Add(1)
			work.Go(func() {
				s.serve(conn)
				conn.Close()
				s.mu.Lock()
				delete(s.conns, conn)
				s.mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		for conn := range s.conns {
			conn.Close()
		}
		s.mu.Unlock()
		work.Wait()
	})
	return s
}

// serve answers the requests of one connection.
func (s *Server) serve(conn net.Conn) {
	if _, err := read(conn); err != nil {
		return
	}
	if _, err := conn.Write(Handshake(1, 4000)); err != nil {
		return
	}
	for {
		request, err := read(conn)
		if err != nil || len(request) < 8 {
			return
		}
		xid, op := int32(binary.BigEndian.Uint32(request)), int32(binary.BigEndian.Uint32(request[4:]))
		a := Answer{}
		if op != Ping {
			s.Requests.Add(1)
			s.Xid.Store(xid)
			a = s.answer(op, request[8:])
		}
		if a.None {
			continue
		}
		if a.Raw == nil {
			a.Raw = Reply(xid, 1, a.Code, a.Body)
		}
		if _, err := conn.Write(a.Raw); err != nil {
			return
		}
	}
}

func read(conn net.Conn) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return nil, err
	}
	packet := make([]byte, min(binary.BigEndian.Uint32(header[:]), 4<<20))
	_, err := io.ReadFull(conn, packet)
	return packet, err
}

// Handshake returns the answer to a handshake.
func Handshake(session int64, timeout int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 36)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 16)...)
}

// Reply returns the packet of a reply.
func Reply(xid int32, zxid int64, code int32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, body...)
}

const statSize = 68

// Agree is the answer of a server that says ok to everything and holds nothing.
func Agree(op int32, body []byte) Answer {
	switch op {
	case Create:
		return Answer{Body: pathOf(body)}
	case Exists:
		return Answer{Body: make([]byte, statSize)}
	case GetData, Children:
		return Answer{Body: make([]byte, 4+statSize)}
	case Multi:
		return Answer{Body: agreeToAll(body)}
	}
	return Answer{}
}

// pathOf returns the path that a request begins with, and its length before it.
func pathOf(body []byte) []byte { return body[:4+binary.BigEndian.Uint32(body)] }

// agreeToAll returns the results of a transaction of which all operations succeed.
func agreeToAll(body []byte) (results []byte) {
	const header = 9 // operation, whether it is the end, error
	for {
		op, done := binary.BigEndian.Uint32(body), body[4] != 0
		results = append(results, body[:header]...)
		if body = body[header:]; done {
			return results
		}
		path := pathOf(body)
		body = body[len(path):]
		if op == Delete {
			body = body[4:]
			continue
		}
		results = append(results, path...)
		body = body[4+binary.BigEndian.Uint32(body):] // data
		body = body[8:]                               // one entry of the access control list: its rights
		for range 2 {
			body = body[4+binary.BigEndian.Uint32(body):]
		}
		body = body[4:] // flags
	}
}
