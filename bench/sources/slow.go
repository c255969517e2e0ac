package main

import (
	"context"
	"io"
	"net"

	"golang.org/x/time/rate"
)

// A slow is a proxy in front of a server that limits the bytes per second of each connection.
type slow struct {
	net.Listener
	server string
	rate   int
}

func newSlow(server string, rate int) (*slow, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &slow{ln, server, rate}
	go s.accept()
	return s, nil
}

func (s *slow) endpoint() string { return "http://" + s.Addr().String() }

func (s *slow) accept() {
	for {
		c, err := s.Accept()
		if err != nil {
			return // it is closed
		}
		go s.pass(c)
	}
}

// pass passes on both directions, the server's slowly.
func (s *slow) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", s.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // until either is closed
		server.Close()
	}()
	b := make([]byte, 64<<10)
	limit := rate.NewLimiter(rate.Limit(s.rate), len(b))
	for {
		n, err := server.Read(b)
		if n > 0 {
			if limit.WaitN(context.Background(), n) != nil {
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
