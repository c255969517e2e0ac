//go:build integration

package clients

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
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
	for _, line := range drive(t, bytes.Split(bytes.Repeat([]byte("k"), 100), nil), "repeat", "db", `{"refresh": null}`, n.addr) {
		if line != "=76616c7565" {
			t.Error(line)
		}
	}
	if opened := n.opened.Load(); opened != 1 {
		t.Errorf("100 calls open %d connections", opened)
	}
}
