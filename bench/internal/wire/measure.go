package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/table"
)

// Measure runs a load to its end. Beside the result it returns how much processor time went by meanwhile on
// the account that cpu reads. An answer that Check refused is an error.
func Measure(l Load, cpu func() (time.Duration, error)) (Result, time.Duration, error) {
	before, err := cpu()
	if err != nil {
		return Result{}, 0, err
	}
	result, err := Run(context.Background(), l)
	if err != nil {
		return result, 0, err
	}
	after, err := cpu()
	if err == nil && result.Failures > 0 {
		err = fmt.Errorf("%d failures, the first: %w", result.Failures, result.Failure)
	}
	return result, after - before, err
}

// The columns that Enter fills.
const (
	PerSecond = "requests/s"
	CPUTime   = "CPU µs/request"
	Half      = "p50 µs"
	Most      = "p99 µs"
)

// Enter enters what came of a load into a row of a table.
func Enter(t *table.Table, row string, r Result, cpu time.Duration) {
	n := float64(r.Times.Count())
	t.Add(row, PerSecond, n/r.Took.Seconds())
	t.Add(row, CPUTime, float64(cpu.Nanoseconds())/1e3/n)
	t.Add(row, Half, float64(r.Times.Quantile(0.5).Nanoseconds())/1e3)
	t.Add(row, Most, float64(r.Times.Quantile(0.99).Nanoseconds())/1e3)
}

// Present returns a Check for requests for records of a data set, by their numbers: each is there and of its
// length, and one in 64 is looked at as a whole.
func Present(spec data.Spec, ids []int) func(int, Reply) error {
	return func(i int, reply Reply) error {
		if !reply.Found || len(reply.Body) != spec.ValueSize {
			return fmt.Errorf("found %v, %d bytes", reply.Found, len(reply.Body))
		}
		if i%64 != 0 {
			return nil
		}
		return spec.Verify(ids[i], reply.Body, true, nil)
	}
}

// Absent is a Check for requests for what is not there.
func Absent(_ int, reply Reply) error {
	if reply.Found {
		return errors.New("found")
	}
	return nil
}

// profileTime is how long a profile is taken.
const profileTime = 5 * time.Second

// Profile runs a load while a node profiles its use of processors, and writes the profile to a file. debug is
// the node's address for that.
func Profile(l Load, debug, name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fetched := make(chan error, 1)
	go func() {
		defer cancel()
		fetched <- fetch(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", debug, profileTime/time.Second), name)
	}()
	l.Duration = 0
	if _, err := Run(ctx, l); err != nil {
		return err
	}
	return <-fetched
}

func fetch(url, name string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, resp.Body)
	return err
}
