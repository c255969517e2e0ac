// Package ports finds addresses for servers that tests start as processes, which have to be told where to
// listen. Between the moment when an address is found and the one when the process listens there, nobody has
// it: so its port is none of those that the kernel gives to whoever asks for any, as connections that go out
// and most listeners of tests do.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports that are taken from. Those that Linux gives away by itself begin with last, unless it is
// configured otherwise (net.ipv4.ip_local_port_range).
const first, last = 10_000, 32_768

var (
	mu    sync.Mutex
	given = map[string]bool{}
)

// Free returns an address, host:port, of the loopback on which nobody listens, and which it has not returned
// before in this process.
func Free() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", first+rand.N(last-first))
		if given[addr] {
			continue
		}
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			continue // somebody has it
		}
		if err := ln.Close(); err != nil {
			return "", err
		}
		given[addr] = true
		return addr, nil
	}
	return "", errors.New("no free port of the loopback was found")
}
