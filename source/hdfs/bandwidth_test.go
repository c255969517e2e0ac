package hdfs

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"sequins/source"
	"sequins/test/expect"
)

// counted is a connection that adds its bytes to the total of a test.
type counted struct {
	net.Conn
	c *counter
}

type counter struct {
	limit, slack float64
	begun        time.Time

	mu   sync.Mutex
	n    int64
	over string // received before it was allowed
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	c.c.n += int64(n)
	if allowed := c.c.limit*time.Since(c.c.begun).Seconds() + c.c.slack; float64(c.c.n) > allowed && c.c.over == "" {
		c.c.over = fmt.Sprintf("%d bytes after %v, when %.0f were allowed", c.c.n, time.Since(c.c.begun), allowed)
	}
	return n, err
}

// Readers that share a limiter use its full bandwidth, and receive at most a connection's buffer more than it has
// admitted.
func TestBandwidth(t *testing.T) {
	const readers, burst, size = 3, 1 << 20, 6 << 20
	for _, limit := range []float64{1 << 20, 20 << 20} {
		synctest.Test(t, func(t *testing.T) {
			f := newFile(size, 1)
			c := &cluster{nodes: map[string]func(net.Conn){"a:1": f.namenode(), "d0:1": datanode{}.serve(f)}}
			// 1.05: checksums, headers and responses of namenodes are extra.
			count := &counter{limit: 1.05 * limit, slack: 1.05 * (burst + readers*dataBuffer), begun: time.Now()}
			s, err := New(Options{URL: "hdfs://a:1/data", Timeout: time.Hour, RetryFor: time.Hour,
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := c.Dial(ctx, network, address)
					return counted{conn, count}, err
				}})
			expect.NoError(t, err)
			l := rate.NewLimiter(rate.Limit(limit), burst)
			start := time.Now()
			var wg sync.WaitGroup
			for range readers {
				wg.Go(func() {
					r, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{Bandwidth: l})
					if err != nil {
						t.Error(err)
						return
					}
					defer r.Close()
					if n, err := io.Copy(io.Discard, r); n != size || err != nil {
						t.Errorf("%d bytes, %v", n, err)
					}
				})
			}
			wg.Wait()
			took, want := time.Since(start), time.Duration((readers*size-burst)/limit*float64(time.Second))
			t.Logf("%d readers of %d MiB at %.0f MiB/s: %v, should be %v", readers, size>>20, limit/(1<<20), took, want)
			if count.over != "" {
				t.Error(count.over)
			}
			if took < want || took > want+want/20 {
				t.Errorf("it took %v, want %v", took, want)
			}
		})
	}
}
