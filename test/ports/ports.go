// Package ports finds addresses for servers that tests start as processes, which need an address before they listen.
// Until the process listens, the port is unused; so ports are taken from outside the range of the kernel's ephemeral
// ports, which outgoing connections and most listeners of tests use. A returned port is not returned to another test
// process either: a lock on a file named after it is held until this process ends.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// The range of the returned ports. Linux's ephemeral ports begin at last, unless configured otherwise
// (net.ipv4.ip_local_port_range).
const first, last = 10_000, 32_768

var (
	mu    sync.Mutex
	given = map[int]*os.File{} // the locked file of each returned port
)

// Free returns an unused loopback address, host:port, that no test process which still runs has been given before.
func Free() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port := first + rand.N(last-first)
		if given[port] != nil {
			continue
		}
		f, err := lock(port)
		if err != nil {
			return "", err
		}
		if f == nil {
			continue // given by another process
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if unused(addr) {
			given[port] = f
			return addr, nil
		}
		if err := f.Close(); err != nil {
			return "", err
		}
	}
	return "", errors.New("no free loopback port")
}

// lock locks the file of a port. It returns nil if another process has it locked.
func lock(port int) (*os.File, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sequins-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, f.Close()
	}
	return nil, errors.Join(err, f.Close())
}

// unused reports whether no process listens on an address.
func unused(addr string) bool {
	ln, err := net.Listen("tcp", addr)
	return err == nil && ln.Close() == nil
}
