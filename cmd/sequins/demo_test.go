package main

import (
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"sequins/test/expect"
)

// startDemo starts the demo. stop ends it with a signal, and checks that nothing is left.
func startDemo(t *testing.T, args ...string) (p *process, stop func(os.Signal)) {
	t.Helper()
	cmd, temp := command(t, append([]string{"demo"}, args...)...), t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	p = start(t, cmd, cmd.StdoutPipe)
	return p, func(signal os.Signal) {
		t.Helper()
		p.stop(signal)
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	}
}

func TestDemo(t *testing.T) {
	// The usual port is taken: by this test, or by somebody else.
	if ln, err := net.Listen("tcp", "127.0.0.1:9599"); err == nil {
		defer ln.Close()
	}
	p, stop := startDemo(t, "--pause", "1ms")
	p.waitFor("serving version " + demoFirst)
	for _, path := range []string{"/products/red-wool-scarf", "/products/blue-oak-chair"} {
		resp, err := http.Get(p.waitFor(`curl (?:-i )?(http://127\.0\.0\.1:\d+` + path + `)$`)[1])
		expect.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s, which the demo suggests: %s", path, resp.Status)
		}
	}
	p.waitFor(`upgraded: [1-9]\d* answers from 2026-01-30, then [1-9]\d* from 2026-01-31; none failed`)
	p.waitFor(`\^C ends this`)
	stop(syscall.SIGINT)
}

// However the demo is interrupted, it leaves no files.
func TestDemoCutShort(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		p, stop := startDemo(t, "--bind", "0.0.0.0:0", "--pause", "1h")
		p.waitFor(`open http://127\.0\.0\.1:\d+/ in a browser`)
		p.waitFor("in 1h0m0s there will be a second version")
		stop(signal)
	}
	sequins(t, "demo", "--bind", "nowhere").wants(t, exitFailure, "sequins: bind: \"nowhere\" is not an address")
}

func TestDemoOnATakenAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer ln.Close()
	sequins(t, "demo", "--bind", ln.Addr().String()).wants(t, exitFailure, "sequins: bind: listen tcp ")
}
