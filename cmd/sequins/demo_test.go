package main

import (
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
)

func TestDemo(t *testing.T) {
	// The usual port is taken: by this test, or by somebody else.
	if ln, err := net.Listen("tcp", "127.0.0.1:9599"); err == nil {
		defer ln.Close()
	}
	cmd := command(t, "demo", "--pause", "1ms")
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	p := start(t, cmd, cmd.StdoutPipe)
	p.waitFor("serving version " + demoFirst)
	for _, path := range []string{"/products/red-wool-scarf", "/products/blue-oak-chair"} {
		resp, err := http.Get(p.waitFor(`curl (?:-i )?(http://127\.0\.0\.1:\d+` + path + `)$`)[1])
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s, which the demo suggests: %s", path, resp.Status)
		}
	}
	p.waitFor(`upgraded: [1-9]\d* answers from 2026-01-30, then [1-9]\d* from 2026-01-31; none failed`)
	p.waitFor(`\^C ends this`)
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

// Whatever ends the demo early, nothing is left.
func TestDemoCutShort(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		cmd := command(t, "demo", "--bind", "127.0.0.1:0", "--pause", "1h")
		temp := t.TempDir()
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		p := start(t, cmd, cmd.StdoutPipe)
		p.waitFor("in 1h0m0s there will be a second version")
		p.signal(signal)
		if code := p.wait(); code != exitOK {
			t.Errorf("exit code %d after %v", code, signal)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	}
	sequins(t, "demo", "--bind", "nowhere").wants(t, exitFailure, "sequins: bind: \"nowhere\" is not an address")
}

func TestDemoOnATakenAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sequins(t, "demo", "--bind", ln.Addr().String()).wants(t, exitFailure, "sequins: bind: cannot listen on ")
}
