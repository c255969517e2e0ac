package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// The first peer's misbehaviour, and how much it may cost.
func TestOnePeerFails(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	broken := func(raw string, n int) behaviour {
		return func(c net.Conn, _ *http.Request) bool {
			io.WriteString(c, raw[:n])
			return false
		}
	}
	stuck := func(raw string, n int) behaviour {
		return func(c net.Conn, req *http.Request) bool {
			io.WriteString(c, raw[:n])
			return hangs(c, req)
		}
	}
	tests := []struct {
		name    string
		do      behaviour
		took    time.Duration
		outcome string // of the first attempt
		ill     bool   // it counts against the peer's health
	}{
		{"hangs", hangs, stageTime, "1 cancelled", false},
		{"is slow", after(150*time.Millisecond, says(answer(200, "a"))), stageTime, "1 cancelled", false},
		{"breaks off at once", breaks, 0, "1 error", true},
		{"breaks off in the header", broken(answer(200, "value"), 20), 0, "1 error", true},
		{"breaks off in a small body", broken(answer(200, "value"), len(answer(200, "value"))-1), 0, "1 error", true},
		{"breaks off in a body of 64 KiB", broken(answer(200, large[:maxWhole]), 50<<10), 0, "1 error", true},
		{"hangs in the header", stuck(answer(200, "value"), 20), stageTime, "1 cancelled", false},
		{"hangs in a small body", stuck(answer(200, "value"), len(answer(200, "value"))-1), stageTime, "1 cancelled", false},
		{"500", says(answer(500, "")), 0, "1 error", false},
		{"503", says(answer(503, large)), 0, "1 error", false},
		{"501", says(answer(501, "not here")), 0, "1 absent", false},
		{"404 of no db", says("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), 0, "1 absent", false},
		{"404 of another version", says(strings.Replace(answer(404, ""), "v1", "v2", 1)), 0, "1 error", false},
		{"another version", says(strings.Replace(answer(200, "old"), "v1", "v0", 1)), 0, "1 error", false},
		{"chunked", says("HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nTransfer-Encoding: chunked\r\n\r\n"), 0, "1 error", false},
		{"garbage", says("garbage\n\n"), 0, "1 error", true},
		{"endless header", says("HTTP/1.1 200 OK\r\n" + large), 0, "1 error", true},
	}
	for _, test := range tests {
		for _, warm := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, warm %v", test.name, warm), func(t *testing.T) {
				inWorld(t, 2, func(w *world) {
					want := map[string]int{test.outcome: 1, "2 ok": 1}
					if warm {
						w.warm()
						want["1 ok"] = 2
					}
					w.first(0)
					w.peers[0].set(test.do)
					w.wantFrom(1, test.took)
					if ill := w.peer("a").failing(time.Now()); ill != test.ill {
						t.Errorf("failing: %v, want %v", ill, test.ill)
					}
					time.Sleep(2 * raceTime)
					w.wantCounted(want)
				})
			})
		}
	}
}

// A peer that cannot be reached, or that takes nothing, is passed over.
func TestUnreachable(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.first(0)
		w.peers[0].down.Store(true)
		w.wantFrom(1, 0)
		if !w.peer("a").failing(time.Now()) {
			t.Error("a peer that refuses connections is not failing")
		}
		// A connection that is not made in time is for later.
		w.peers[0].down.Store(false)
		w.peers[0].lag.Store(int64(raceTime + time.Second))
		w.first(0)
		w.wantFrom(1, stageTime)
		time.Sleep(2 * raceTime)
		if n := w.peers[0].accepted.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		w.peers[0].lag.Store(int64(time.Hour))
		w.first(0)
		w.wantFrom(0, 0)
		// Nor does one that never comes hold anything up.
		w.peers[0].cut(false)
		w.first(0)
		w.wantFrom(1, stageTime)
		time.Sleep(dialTime)
		w.wantCounted(map[string]int{"1 ok": 1, "2 ok": 3, "1 error": 1, "1 cancelled": 2})
	})
	inWorld(t, 2, func(w *world) {
		w.warm()
		w.first(0)
		for c := range w.peers[0].conns {
			go io.WriteString(c, "x") // not asked for, and found with the answer only
		}
		synctest.Wait()
		w.wantFrom(1, 0)
	})
	inWorld(t, 2, func(w *world) {
		release := make(chan struct{})
		w.peers[0].set(func(c net.Conn, req *http.Request) bool {
			says(answer(200, "a"))(c, req)
			<-release // reads nothing any more
			return false
		})
		w.warm()
		w.first(0)
		w.wantFrom(1, stageTime)
		time.Sleep(raceTime)
		w.wantCounted(map[string]int{"1 ok": 2, "2 ok": 1, "1 cancelled": 1})
		close(release)
	})
}

// Every stage begins when the one before is over, and all time ends in the end.
func TestStages(t *testing.T) {
	for _, warm := range []bool{true, false} {
		inWorld(t, 4, func(w *world) {
			if warm {
				w.warm()
			}
			var mu sync.Mutex
			var asked []time.Duration
			begun := time.Now()
			for _, p := range w.peers {
				p.set(func(c net.Conn, req *http.Request) bool {
					mu.Lock()
					asked = append(asked, time.Since(begun))
					mu.Unlock()
					return hangs(c, req)
				})
			}
			_, err := w.ask(raceTime)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNoPeers) {
				t.Error(err)
			}
			mu.Lock()
			if diff := cmp.Diff([]time.Duration{0, stageTime, 2 * stageTime, 3 * stageTime}, asked); diff != "" {
				t.Errorf("asked at (-want +got):\n%s", diff)
			}
			mu.Unlock()
			synctest.Wait()
			want := map[string]int{"1 timeout": 1, "2 timeout": 1, "3+ timeout": 2}
			if warm {
				want["1 ok"] = 4
			}
			w.wantCounted(want)
		})
	}
}

// A failure brings the next stage forward, which then has its full time.
func TestFailureBringsTheNextForward(t *testing.T) {
	for _, warm := range []bool{true, false} {
		inWorld(t, 3, func(w *world) {
			if warm {
				w.warm()
			}
			w.peers[0].set(after(30*time.Millisecond, says(answer(500, ""))))
			w.peers[1].set(hangs)
			w.peers[2].set(hangs)
			w.first(0)
			begun := time.Now()
			for _, p := range w.peers[1:] {
				p.set(func(c net.Conn, req *http.Request) bool {
					switch time.Since(begun) {
					case 30 * time.Millisecond:
						return hangs(c, req)
					case 130 * time.Millisecond:
						return says(answer(200, "third"))(c, req)
					}
					t.Errorf("asked after %v", time.Since(begun))
					return false
				})
			}
			if g, err := w.ask(130 * time.Millisecond); err != nil || g.body != "third" {
				t.Error(g, err)
			}
		})
	}
}

func TestNobodyLeft(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, warm := range []bool{false, true} {
			w.peers[0].set(says(answer(501, "")))
			w.peers[1].set(breaks)
			w.peers[2].set(after(50*time.Millisecond, says(answer(500, ""))))
			_, err := w.ask(50 * time.Millisecond)
			if !errors.Is(err, ErrNoPeers) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("warm %v: %v", warm, err)
			}
			for _, want := range []string{"peer a: it does not have", "peer b: the connection ended", "peer c: it answers with an error: status 500", "v1"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %v", want, err)
				}
			}
			for i := range w.peers {
				w.first(i)
				w.peers[i].set(says(answer(200, "x")))
			}
			w.warm()
		}
		if _, err := fetch(w.Client, query()); !errors.Is(err, ErrNoPeers) {
			t.Errorf("no peers: %v", err)
		}
	})
}

// A caller that gives up is heard at once where attempts run beside it, and
// after one stage otherwise.
func TestGivenUp(t *testing.T) {
	for _, warm := range []bool{true, false} {
		inWorld(t, 1, func(w *world) {
			if warm {
				w.warm()
			}
			w.peers[0].set(hangs)
			for after, took := range map[time.Duration]time.Duration{10 * time.Millisecond: stageTime, 150 * time.Millisecond: 150 * time.Millisecond} {
				if !warm {
					took = after
				}
				ctx, cancel := context.WithTimeoutCause(context.Background(), after, errors.New("x"))
				begun := time.Now()
				_, err := w.Fetch(ctx, query(w.peers...))
				if d := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || d != took {
					t.Errorf("warm %v: %v after %v, want %v", warm, err, d, took)
				}
				cancel()
				time.Sleep(raceTime)
				w.peers[0].set(says(answer(200, "a")))
				w.warm()
				w.peers[0].set(hangs)
				if !warm {
					w.peers[0].cut(false)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := w.Fetch(ctx, query(w.peers...)); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// What losers leave: a small answer a connection, anything else none.
func TestLosers(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	tests := []struct {
		name string
		do   behaviour
		kept bool
	}{
		{"small", after(150*time.Millisecond, says(answer(200, "late"))), true},
		{"64 KiB", after(150*time.Millisecond, says(answer(200, large[:maxWhole]))), true},
		{"an error", after(150*time.Millisecond, says(answer(500, "late"))), true},
		{"absent", after(150*time.Millisecond, says(answer(501, "late"))), true},
		{"just in time", after(raceTime-1, says(answer(200, "late"))), true},
		{"large", after(150*time.Millisecond, says(answer(200, large))), false},
		{"too late", after(raceTime+1, says(answer(200, "late"))), false},
		{"nothing", hangs, false},
		{"broken", after(150*time.Millisecond, says(answer(200, "late")[:30])), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				w.warm()
				w.first(0)
				w.peers[0].set(test.do)
				w.wantFrom(1, stageTime)
				time.Sleep(2 * raceTime)
				w.peers[0].set(says(answer(200, "a")))
				w.first(0)
				w.wantFrom(0, 0)
				if n := w.peers[0].accepted.Load(); (n == 1) != test.kept {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// The winner may be one that began before others, and the last.
func TestLateWinner(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.warm()
		w.peers[0].set(after(250*time.Millisecond, says(answer(200, "a"))))
		w.peers[1].set(hangs)
		w.peers[2].set(hangs)
		w.first(0)
		w.wantFrom(0, 250*time.Millisecond)
		time.Sleep(2 * raceTime)
		w.wantCounted(map[string]int{"1 ok": 4, "2 cancelled": 1, "3+ cancelled": 1})
	})
}

// A large answer wins with its first part, and may then take any time, as long as
// it comes at the least rate.
func TestLargeBodies(t *testing.T) {
	piece := strings.Repeat("x", 512<<10)
	raw := answer(200, strings.Repeat(piece, 20))
	slow := func(pause time.Duration, pieces int) behaviour {
		return func(c net.Conn, req *http.Request) bool {
			for i := 0; i < len(raw) && pieces > 0; i += len(piece) {
				if _, err := io.WriteString(c, raw[i:min(len(raw), i+len(piece))]); err != nil {
					return false
				}
				pieces--
				time.Sleep(pause)
			}
			return pieces > 0 || hangs(c, req)
		}
	}
	inWorld(t, 1, func(w *world) {
		w.peers[0].set(slow(9*time.Second, 100))
		for range 2 {
			g, err := fetch(w.Client, query(w.peers...))
			if err != nil || len(g.body) != 20*len(piece) {
				t.Errorf("%d bytes, %v", len(g.body), err)
			}
			time.Sleep(10 * time.Second)
		}
		if n := w.peers[0].accepted.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		w.peers[0].set(slow(0, 3))
		begun := time.Now()
		g, err := fetch(w.Client, query(w.peers...))
		if d := time.Since(begun); err == nil || !strings.Contains(err.Error(), "peer a, after ") || d < pieceTime*9/10 || d > pieceTime {
			t.Errorf("a peer that stalls: %d bytes, %v after %v", len(g.body), err, d)
		}
		w.peers[0].set(func(c net.Conn, _ *http.Request) bool {
			io.WriteString(c, raw[:300<<10])
			return false
		})
		g, err = fetch(w.Client, query(w.peers...))
		ended := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) // a pipe says that when its deadline is set
		if !ended || len(g.body) > 300<<10 {
			t.Errorf("a peer that breaks off: %d bytes, %v", len(g.body), err)
		}
		// A caller that stops reading has the connection cut off.
		w.peers[0].set(says(raw))
		a, err := w.Fetch(context.Background(), query(w.peers...))
		expect.NoError(t, err)
		if n, err := io.ReadFull(a.Body, make([]byte, 200<<10)); err != nil || n != 200<<10 {
			t.Error(n, err)
		}
		a.Body.Close()
		a.Body.Close()
		if _, err := a.Body.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("reading after Close: %v", err)
		}
		synctest.Wait()
		w.peers[0].mu.Lock()
		defer w.peers[0].mu.Unlock()
		if len(w.peers[0].conns) != 0 {
			t.Error("the connection is open")
		}
	})
}
