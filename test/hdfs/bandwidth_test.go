//go:build integration

package hdfs

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"sequins/load"
	"sequins/source/hdfs"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/speed"
)

// testBandwidth loads two databases at the same time, under one limit. The bytes of the servers are counted
// before they reach this process: never more than the limit plus the buffers.
func testBandwidth(t *testing.T, c *cluster) {
	const limit, dbs = 4 << 20, 2
	d := c.newDir()
	set := dataset{files: 2, records: 4000, size: 1000}
	for db := range dbs {
		set.write(t, c, fmt.Sprintf("%s/db%d/1", d.root, db))
	}
	counter := gateway.NewCounter(t)
	src := d.open(t, d.root, func(o *hdfs.Options) { o.Dial = counter.Dial })
	limiter := rate.NewLimiter(limit, limit/20)
	var loads sync.WaitGroup
	start := time.Now()
	for db := range dbs {
		loads.Go(func() {
			loader := load.New(src, nil, load.Options{Bandwidth: limiter, Partitioner: "string", Workers: 2})
			if err := speed.LoadAll(t.Context(), loader, t.TempDir(), fmt.Sprint("db", db), "1"); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		loads.Wait()
		close(done)
	}()
	// For each of at most four readers, half a mebibyte in buffers, of this process and of the kernel; what
	// namenodes say; and of each file a sample.
	const overhead = 4<<19 + 256<<10
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	size := dbs * int64(set.files*set.records*set.size)
	for over := false; ; {
		select {
		case <-done:
			took := time.Since(start)
			t.Logf("%d bytes were sent in %v, %.3f of the limit", counter.Bytes(), took, float64(counter.Bytes())/limit/took.Seconds())
			if slow := 3 * time.Duration(float64(size)/limit*float64(time.Second)); took > slow {
				t.Errorf("it took %v, more than %v", took, slow)
			}
			return
		case <-tick.C:
			sent := counter.Bytes() // before the clock is read
			if allowed := 1.05*limit*time.Since(start).Seconds() + float64(limiter.Burst()) + overhead; float64(sent) > allowed && !over {
				over = true
				t.Errorf("after %v, %d bytes had been sent, of %.0f", time.Since(start), sent, allowed)
			}
		}
	}
}

// testOnlyWhatIsNeeded: of files that are cut as a partitioner cuts them, a node reads those of its own
// partitions, and of the others a sample.
func testOnlyWhatIsNeeded(t *testing.T, c *cluster) {
	const files, records = 6, 12000
	d := c.newDir()
	c.Do(t, fmt.Sprintf("job out=%s/db/1 format=seq type=text compression=NONE records=%d reducers=%d",
		"hdfs://"+c.namenode+d.root, records, files))
	var sent atomic.Int64
	src := d.open(t, d.root, func(o *hdfs.Options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return receiving{conn, &sent}, err
		}
	})
	local, err := store.Open(t.TempDir())
	expect.NoError(t, err)
	defer local.Close()
	var progress load.Progress
	loader := load.New(src, &progress, load.Options{})
	plan, err := loader.Plan(t.Context(), "db", "1")
	if err != nil || !plan.Aligned {
		t.Fatalf("%+v, %v", plan, err)
	}
	sent.Store(0)
	expect.NoError(t, speed.Load(t.Context(), loader, local, plan, []int{1, 4}))
	var own int64
	for _, f := range plan.Files {
		if strings.HasSuffix(f.Name, "00001") || strings.HasSuffix(f.Name, "00004") {
			own += f.Size
		}
	}
	if s := progress.Snapshot(); s.Files != 2 || s.FilesDone != 2 || s.Bytes != own || s.BytesDone != own {
		t.Errorf("the progress says %+v, and the files have %d bytes", s, own)
	}
	// Checksums, headers and what namenodes say are some hundredths.
	if n := sent.Load(); n < own || n > own+own/10+50_000 {
		t.Errorf("for files of %d bytes, %d were sent", own, n)
	}
}

// A receiving connection adds up what comes.
type receiving struct {
	net.Conn
	n *atomic.Int64
}

func (r receiving) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.n.Add(int64(n))
	return n, err
}
