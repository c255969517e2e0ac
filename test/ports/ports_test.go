package ports

import (
	"net"
	"strconv"
	"testing"

	"sequins/test/expect"
)

func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		addr, err := Free()
		expect.NoError(t, err)
		host, port, err := net.SplitHostPort(addr)
		if n, _ := strconv.Atoi(port); err != nil || host != "127.0.0.1" || n < first || n >= last || seen[addr] {
			t.Errorf("%s: %v, given before: %v", addr, err, seen[addr])
		}
		seen[addr] = true
	}
}

// TestLock: a port whose file is locked elsewhere is not given.
func TestLock(t *testing.T) {
	const port = last // which is never given
	f, err := lock(port)
	if err != nil || f == nil {
		t.Fatalf("the first lock: %v, %v", f, err)
	}
	if second, err := lock(port); err != nil || second != nil {
		t.Errorf("the second lock: %v, %v", second, err)
	}
	expect.NoError(t, f.Close())
	f, err = lock(port)
	if err != nil || f == nil {
		t.Fatalf("a lock after the first was released: %v, %v", f, err)
	}
	expect.NoError(t, f.Close())
}
