package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
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
