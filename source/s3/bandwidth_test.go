package s3_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"sequins/source"
	"sequins/source/s3"
	"sequins/test/expect"
)

// distant is a server that answers range requests after a delay, on the test's clock. It adds up the requested bytes.
type distant struct {
	size    int64
	latency time.Duration
	each    float64 // bytes a second that a connection lets through; 0 is no limit
	limit   float64 // bytes a second that may be asked for; 0 is no limit
	burst   int64

	mu       sync.Mutex
	begun    time.Time
	asked    int64
	requests int
	over     string // requested before it was allowed
	conns    chan net.Conn
}

func (d *distant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/_SYMLINK") {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		return
	}
	var from, to int64
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil || from >= d.size {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	to = min(to, d.size-1)
	d.count(to + 1 - from)
	time.Sleep(d.latency)
	w.Header().Set("ETag", `"tag"`)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, d.size))
	w.Header().Set("Content-Length", fmt.Sprint(to+1-from))
	w.WriteHeader(http.StatusPartialContent)
	some := make([]byte, 64<<10)
	for left := to + 1 - from; left > 0; left -= int64(len(some)) {
		some = some[:min(int64(len(some)), left)]
		if d.each > 0 {
			time.Sleep(time.Duration(float64(len(some)) / d.each * float64(time.Second)))
		}
		if _, err := w.Write(some); err != nil {
			return
		}
	}
}

func (d *distant) count(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked += n
	d.requests++
	allowed := d.limit*time.Since(d.begun).Seconds() + float64(d.burst)
	if d.limit > 0 && float64(d.asked) > allowed+1 && d.over == "" {
		d.over = fmt.Sprintf("%d bytes after %v, when %.0f were allowed", d.asked, time.Since(d.begun), allowed)
	}
}

func (d *distant) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	d.conns <- there
	return here, nil
}

// Accept, Close and Addr make it a net.Listener.
func (d *distant) Accept() (net.Conn, error) {
	c, ok := <-d.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (d *distant) Close() error   { return nil }
func (d *distant) Addr() net.Addr { return &net.TCPAddr{} }

// No byte is requested before the limiter has admitted it, for any number of readers and read-ahead; and everything
// that it admits is requested.
func TestBandwidth(t *testing.T) {
	const readers, burst = 3, 1 << 20
	for _, tt := range []struct {
		limit   float64
		size    int64
		latency time.Duration
	}{
		{1 << 20, 6 << 20, 30 * time.Millisecond},
		{20 << 20, 40 << 20, 30 * time.Millisecond},
		{200 << 20, 100 << 20, 30 * time.Millisecond},
		{20 << 20, 40 << 20, 0},
		{20 << 20, 40 << 20, 150 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &distant{size: tt.size, latency: tt.latency, limit: tt.limit, burst: burst}
			took := readAtOnce(t, d, rate.NewLimiter(rate.Limit(tt.limit), burst), readers)
			want := time.Duration(float64(readers*tt.size-burst) / tt.limit * float64(time.Second))
			t.Logf("%d readers of %d MiB at %.0f MiB/s, %v away: %v, should be %v; %d requests", readers, tt.size>>20, tt.limit/(1<<20), tt.latency, took, want, d.requests)
			if d.over != "" {
				t.Error(d.over)
			}
			if d.asked != readers*tt.size {
				t.Errorf("%d bytes were asked for of %d", d.asked, readers*tt.size)
			}
			if took < want || took > want+want/20+4*tt.latency {
				t.Errorf("it took %v, want %v", took, want)
			}
		})
	}
}

// readAtOnce reads the object by several readers at the same time, which share a limiter.
func readAtOnce(t *testing.T, d *distant, l *rate.Limiter, readers int) time.Duration {
	d.begun, d.conns = time.Now(), make(chan net.Conn, 100)
	server := &http.Server{Handler: d}
	go server.Serve(d)
	defer server.Close()
	defer close(d.conns)
	o := options("http://server", "")
	o.Dial, o.Timeout = d.dial, time.Hour
	src, err := s3.New(t.Context(), o)
	expect.NoError(t, err)
	start := time.Now()
	file := source.File{Name: "file", Size: d.size, ModTime: time.Now(), Mark: `"tag"`}
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			f, err := src.Open(t.Context(), "db", "1", file, source.ReadOptions{Bandwidth: l})
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if n, err := io.Copy(io.Discard, f); n != d.size || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// Reading an object over many slow connections is many times as fast as over one.
func TestParallel(t *testing.T) {
	const size, each, latency = 192 << 20, 20e6, 30 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		d := &distant{size: size, latency: latency, each: each}
		took := readAtOnce(t, d, nil, 1).Seconds()
		one := latency.Seconds() + size/each
		t.Logf("%d MiB: %.2f s through one connection, %.2f s through several, %.1f times as fast", size>>20, one, took, one/took)
		if one/took < 5 {
			t.Errorf("only %.1f times as fast", one/took)
		}
		if d.asked != size {
			t.Errorf("%d bytes were asked for of %d", d.asked, size)
		}
	})
}
