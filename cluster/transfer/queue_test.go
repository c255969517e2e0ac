package transfer_test

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/test/expect"
)

// slowGiver returns the address of a node that announces much and sends 20 KB/s of it, and a channel that is closed when it has begun.
func slowGiver(t *testing.T) (addr string, begun chan struct{}) {
	begun = make(chan struct{})
	piece := make([]byte, 1000)
	addr = fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.block", content.Header: manifest.Content().Code()}, body: piece, length: 100_000_000_000,
		then: func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if _, err := w.Write(piece); err != nil || r.Context().Err() != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
			}
		}})
	return addr, begun
}

// A copy that finds no place for long enough gives up.
func TestCrowded(t *testing.T) {
	good := newNode(t, transfer.Options{}, map[int][]byte{1: block(t, 1, partitions, 1, 100)})
	taker := newNode(t, transfer.Options{LeastRate: 1000, Queue: 300 * time.Millisecond}, nil)
	slow, begun := slowGiver(t)
	ended := make(chan error, 1)
	go func() { ended <- taker.Fetch(t.Context(), slow, taker.want(0)) }()
	<-begun
	if err := taker.Fetch(t.Context(), good.addr, taker.want(1)); !errors.Is(err, transfer.ErrCrowded) {
		t.Error(err)
	}
	taker.SetLimits(transfer.Limits{Streams: 2})
	expect.NoError(t, taker.Fetch(t.Context(), good.addr, taker.want(1)))
	good.Close()
	taker.Close()
}

// However much a node answers, little memory is taken for it.
func TestLargeAnswers(t *testing.T) {
	taker, c := newNode(t, transfer.Options{}, nil), manifest.Content()
	const most = 67 << 20 // bytes
	for name, a := range map[string]struct{ before, element, after string }{
		"numbers":  {`{"x":[`, `0`, `]}`},
		"files":    {`{"Files":[`, `{}`, `]}`},
		"a string": {`{"version":"`, `xxxxxxx`, `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(a.before + strings.Repeat(a.element+",", most/(len(a.element)+1)) + a.element + a.after)
			addr := fake(t, answer{code: 200, header: map[string]string{"Content-Type": "application/vnd.sequins.manifest+json", content.Header: c.Code()}, body: body})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := taker.Manifest(t.Context(), []string{addr}, "db", c)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*most {
				t.Errorf("%d MB were allocated for an answer of %d MB", took>>20, len(body)>>20)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
}
