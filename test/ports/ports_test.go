package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		addr, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(addr)
		if n, _ := strconv.Atoi(port); err != nil || host != "127.0.0.1" || n < first || n >= last || seen[addr] {
			t.Errorf("%s: %v, given before: %v", addr, err, seen[addr])
		}
		seen[addr] = true
	}
}
