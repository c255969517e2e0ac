// Package ports finds addresses for servers that tests start as processes, which need an address before they listen.
// Until the process listens, the port is unused; so ports are taken from outside the range of the kernel's ephemeral
// ports, which outgoing connections and most listeners of tests use.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The range of the returned ports. Linux's ephemeral ports begin at last, unless configured otherwise
// (net.ipv4.ip_local_port_range).
const first, last = 10_000, 32_768

var (
	mu    sync.Mutex
	given = map[string]bool{}
)

// Free returns an unused loopback address, host:port, that it has not returned before in this process.
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
			continue // in use
		}
		if err := ln.Close(); err != nil {
			return "", err
		}
		given[addr] = true
		return addr, nil
	}
	return "", errors.New("no free loopback port")
}
