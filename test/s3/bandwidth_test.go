//go:build integration

package s3

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"sequins/load"
	"sequins/source"
	"sequins/source/local"
	"sequins/source/objects"
	"sequins/source/s3"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/speed"
)

// TestBandwidth loads two databases from S3 and one from the disk at the same time, under one limit. What the
// server sends is counted before it reaches this process: never is it, with what was read from the disk, more
// than the limit lets through. That it is not much less either, source/s3 shows under a clock of its own; here
// the machine may be busy.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	const limit, files, records = 2 << 20, 4, 2500
	g := gateway.Start(t)
	dir := t.TempDir()
	var size int64 // of a database
	for _, n := range writeCut(t, filepath.Join(dir, "c", "1"), files, records, 1000) {
		size += n
	}
	g.PutTree(t, "a/1", filepath.Join(dir, "c", "1"))
	g.PutTree(t, "b/1", filepath.Join(dir, "c", "1"))
	counter := gateway.NewCounter(t)
	bucket, err := s3.New(t.Context(), s3.Options{
		URL: "s3://" + gateway.Bucket, Region: gateway.Region, Endpoint: g.Endpoint(), PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey, Options: objects.Options{Dial: counter.Dial},
	})
	expect.NoError(t, err)
	disk, err := local.New(dir)
	expect.NoError(t, err)
	limiter := rate.NewLimiter(limit, limit/20)
	var onDisk load.Progress
	var loads sync.WaitGroup
	start := time.Now()
	for db, src := range map[string]source.Source{"a": bucket, "b": bucket, "c": disk} {
		loads.Go(func() {
			p := new(load.Progress)
			if db == "c" {
				p = &onDisk
			}
			if err := speed.LoadAll(t.Context(), load.New(src, p, load.Options{Bandwidth: limiter}), t.TempDir(), db, "1"); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		loads.Wait()
		close(done)
	}()
	// Headers of answers, and listings, come on top.
	const overhead = 64 << 10
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for over := false; ; {
		select {
		case <-done:
			took := time.Since(start)
			sent := counter.Bytes()
			t.Logf("%d bytes were sent in %v, %.3f of the limit with those of the disk", sent, took, float64(sent+size)/limit/took.Seconds())
			if sent < 2*size {
				t.Errorf("%d bytes were sent of %d", sent, 2*size)
			}
			if slow := 3 * time.Duration(float64(3*size)/limit*float64(time.Second)); took > slow {
				t.Errorf("it took %v, more than %v", took, slow)
			}
			return
		case <-tick.C:
			fetched := counter.Bytes() + onDisk.Snapshot().BytesDone // before the clock is read
			allowed := 1.05*limit*time.Since(start).Seconds() + float64(limiter.Burst()) + overhead
			if float64(fetched) > allowed && !over {
				over = true
				t.Errorf("after %v, %d bytes had been fetched, of %.0f", time.Since(start), fetched, allowed)
			}
		}
	}
}
