//go:build integration

package clients

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// node is a fake whose connections are counted.
type node struct {
	*httptest.Server
	addr         string
	opened, open atomic.Int64
}

func startNode(t *testing.T, answer http.HandlerFunc) *node {
	t.Helper()
	n := &node{Server: httptest.NewUnstartedServer(answer)}
	n.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			n.opened.Add(1)
			n.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			n.open.Add(-1)
		}
	}
	n.Start()
	t.Cleanup(n.Close)
	n.addr = n.Listener.Addr().String()
	return n
}

// answerValue answers with the value "value" of the version v1, and that there is no map.
func answerValue(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		http.Error(w, "no map", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("X-Sequins-Version", "v1")
	fmt.Fprint(w, "value")
}

// Calls one after the other use one connection.
func TestKeptConnectionsInPython(t *testing.T) {
	t.Parallel()
	n := startNode(t, answerValue)
	for _, line := range drive(t, sameKeys(100), "repeat", "db", `{"refresh": null}`, n.addr) {
		if line != value {
			t.Error(line)
		}
	}
	if opened := n.opened.Load(); opened != 1 {
		t.Errorf("100 calls open %d connections", opened)
	}
}

// A node that sends bytes now and then, and no answer, costs no call more than attempt_timeout.
func TestDribblingNodesInPython(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\n"
	for name, answer := range map[string][2]string{
		"header":          {ok, "X: y\r\n"},
		"header line":     {ok + "X: ", "y"},
		"continue":        {"", "HTTP/1.1 100 Continue\r\n\r\n"},
		"chunk extension": {ok + "Transfer-Encoding: chunked\r\n\r\n1;", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := startNode(t, answerValue)
			bad := startNode(t, func(w http.ResponseWriter, r *http.Request) {
				if !dribble(w, answer[0], answer[1]) {
					t.Error("the client waits for the answer")
				}
			})
			for _, line := range drive(t, sameKeys(20), "repeat", "db", `{"refresh": null, "timeout": 20, "attempt_timeout": 0.3}`, bad.addr, good.addr) {
				if line != value {
					t.Error(line)
				}
			}
		})
	}
}

// dribble answers with first and then, in every 30 ms, rest. It returns false if the client waits for five seconds.
func dribble(w http.ResponseWriter, first, rest string) (ended bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return true
	}
	defer conn.Close()
	_, err = io.WriteString(conn, first)
	for range 5 * time.Second / (30 * time.Millisecond) {
		if err != nil {
			return true
		}
		time.Sleep(30 * time.Millisecond) // what the test is about
		_, err = io.WriteString(conn, rest)
	}
	return false
}

// A node that never answers fails no call, neither while there is no map yet nor when it is requested again.
func TestHungNodeInPython(t *testing.T) {
	t.Parallel()
	hung := startNode(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	var maps atomic.Int64
	var good *node
	good = startNode(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			answerValue(w, r)
			return
		}
		maps.Add(1)
		fmt.Fprintf(w, `{"db":"db","version":"v1","partitioner":"string","partitions":1,"scheme":"http","nodes":["%s","%s"],"replicas":[[0]]}`, good.addr, hung.addr)
	})
	for mode, calls := range map[string]int{"first": 8, "repeat": 300} {
		lines := drive(t, sameKeys(calls), mode, "db", `{"refresh": 0.01, "timeout": 2, "attempt_timeout": 2}`, hung.addr, good.addr)
		for _, line := range lines {
			if line != value {
				t.Errorf("%s: %s", mode, line)
			}
		}
	}
	if maps.Load() == 0 {
		t.Error("the map is not requested")
	}
}

// value is the value of answerValue as drive.py prints it.
const value = "=76616c7565"

func sameKeys(n int) [][]byte { return slices.Repeat([][]byte{[]byte("k")}, n) }

// Calls do not wait for the map.
func TestMapInBackgroundInPython(t *testing.T) {
	t.Parallel()
	const calls = 10
	var read atomic.Int64
	all := make(chan struct{})
	n := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			answerValue(w, r)
			if read.Add(1) == calls {
				close(all)
			}
			return
		}
		select {
		case <-all:
		case <-r.Context().Done():
			if read.Load() < calls {
				t.Error("a call waits for the map")
			}
		}
	})
	for _, line := range drive(t, sameKeys(calls), "repeat", "db", `{"timeout": 5, "attempt_timeout": 5}`, n.addr) {
		if line != value {
			t.Error(line)
		}
	}
}

// Connections that are no longer used are closed.
func TestIdleConnectionsInPython(t *testing.T) {
	t.Parallel()
	var first sync.WaitGroup
	first.Add(8)
	var asked atomic.Int64
	n := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 8 {
			first.Done()
			first.Wait()
		}
		answerValue(w, r)
	})
	cmd := exec.CommandContext(t.Context(), "python3", filepath.Join(process.Root(), "test", "clients", "drive.py"), "idle", "db", n.addr)
	in, err := cmd.StdinPipe()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
	expect.Eventually(t, "all but one connection are closed", func() bool { return n.opened.Load() >= 8 && n.open.Load() == 1 })
	expect.NoError(t, in.Close())
	expect.NoError(t, cmd.Wait())
}
