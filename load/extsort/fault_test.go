package extsort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/faultfs"
)

// TestSorterYieldError: Merge ends with the error of yield, wherever the records come from.
func TestSorterYieldError(t *testing.T) {
	stop := errors.New("stop")
	for name, config := range smallSorters {
		f := faultfs.New()
		s := config.open(t, f)
		for i := range 300 {
			expect.NoError(t, s.Add(fmt.Appendf(nil, "%04d", i), []byte("some value"), false))
		}
		n := 0
		err := s.Merge(context.Background(), func(key, value []byte) error {
			if n++; n == 100 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || n != 100 {
			t.Errorf("%s: Merge ends after %d records with %v", name, n, err)
		}
		expect.NoError(t, s.Close())
		checkNoRuns(t, f)
	}
}

// countdown is a context that is cancelled after it was looked at n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestSorterCancel cancels the context at each time at which it is looked at.
func TestSorterCancel(t *testing.T) {
	for name, config := range smallSorters {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				f := faultfs.New()
				s := config.open(t, f)
				for i := range 100 {
					expect.NoError(t, s.Add(fmt.Appendf(nil, "%04d", i%60), []byte("some value"), i%7 == 0))
				}
				err := s.Merge(&countdown{context.Background(), n}, func(key, value []byte) error { return nil })
				expect.NoError(t, s.Close())
				checkNoRuns(t, f)
				if err == nil {
					if n == 0 {
						t.Error("nobody has looked at the context")
					}
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
		})
	}
}

// sortSome adds records and merges them, some of which are larger than a frame or the memory.
func sortSome(s *Sorter) (list []string, err error) {
	for i := range 60 {
		value := bytes.Repeat([]byte{byte('a' + i%26)}, i*37%120)
		if i%20 == 7 {
			value = bytes.Repeat(value, 30)
		}
		if err := s.Add(fmt.Appendf(nil, "key%03d", i*17%40), value, i%9 == 0); err != nil {
			return nil, err
		}
	}
	err = s.Merge(context.Background(), func(key, value []byte) error {
		list = append(list, string(key)+"="+string(value))
		return nil
	})
	return list, err
}

// TestSorterFailures lets each system call fail. The sorter reports it, and leaves nothing behind.
func TestSorterFailures(t *testing.T) {
	config := smallSorters["three, tiny"]
	for n := 1; ; n++ {
		f := faultfs.New()
		s := config.open(t, f)
		before := f.Calls()
		injected := []error{syscall.EIO, syscall.ENOSPC}[n%2]
		f.FailAt(n, injected)
		_, err := sortSome(s)
		cerr := s.Close()
		if f.Calls()-before < n {
			expect.NoError(t, errors.Join(err, cerr))
			if n < 100 {
				t.Errorf("only %d calls", n)
			}
			return
		}
		expect.Error(t, fmt.Sprintf("call %d", n), errors.Join(err, cerr), injected)
		left := list(t, f, "/sort")
		removal := len(left) == 1 && strings.Contains(errors.Join(err, cerr).Error(), "remove /sort/run")
		if len(left) > 0 && !removal || f.OpenFiles() > 0 {
			t.Errorf("call %d failed: left over: %v, %d open", n, left, f.OpenFiles())
		}
	}
}

// TestSorterDiskFull: at the first write that does not fit, all runs are removed.
func TestSorterDiskFull(t *testing.T) {
	f := faultfs.New()
	s := smallSorters["many runs"].open(t, f)
	f.SetFree(20_000)
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = s.Add(fmt.Appendf(nil, "%05d", i), []byte("some value"), false)
	}
	expect.Error(t, "Add", err, syscall.ENOSPC)
	checkNoRuns(t, f)
	expect.Error(t, "Add again", s.Add(nil, nil, false), syscall.ENOSPC)
	expect.Error(t, "Merge", s.Merge(context.Background(), nil), syscall.ENOSPC)
	expect.NoError(t, s.Close())
}
