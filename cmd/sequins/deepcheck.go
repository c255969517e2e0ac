package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sequins/config"
	"sequins/internal/term"
	"sequins/source"
)

// checkTime is how long each check of check-config --deep may take.
const checkTime = 15 * time.Second

// finding is the result of a check: what was found or what is wrong, with what to do.
type finding struct {
	Level string `json:"level"` // levelOK, levelWarning or levelFailed
	Text  string `json:"text"`
}

const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelFailed  = "failed"
)

func found(format string, args ...any) finding { return finding{levelOK, fmt.Sprintf(format, args...)} }

func warned(format string, args ...any) finding {
	return finding{levelWarning, fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) finding {
	return finding{levelFailed, fmt.Sprintf(format, args...)}
}

// failedBy is the finding for an error, with advice that depends on it.
func failedBy(err error) finding { return failed("%v%s", err, advice(err)) }

// deepFinding is a finding with the name of its check.
type deepFinding struct {
	Check string `json:"check"`
	finding
}

// deepCheck is one of the checks of check-config --deep.
type deepCheck struct {
	name string
	run  func(context.Context) finding
}

// deep holds what the checks of a configuration share.
type deep struct {
	c *config.Config

	source   func() (source.Source, error)
	contents func() (sourceSizes, error)
	zk       func() (ensemble, error)
}

// newDeep returns the checks' state. What they share is found out once, when the first of them needs it.
func newDeep(ctx context.Context, c *config.Config) *deep {
	d := &deep{c: c}
	d.source = sync.OnceValues(func() (source.Source, error) { return openSource(ctx, c) })
	d.contents = sync.OnceValues(func() (sourceSizes, error) { return d.measureSource(ctx) })
	d.zk = sync.OnceValues(func() (ensemble, error) { return d.probeZooKeeper(ctx) })
	return d
}

// checks returns the checks that apply to the configuration, in the order in which they are shown.
func (d *deep) checks() []deepCheck {
	all := []deepCheck{{"source", d.checkSource}, {"fields", d.checkFields}}
	all = append(all, d.secretChecks()...)
	all = append(all, d.storeChecks()...)
	all = append(all, d.addressChecks()...)
	all = append(all, d.certificateChecks()...)
	if d.c.Sharding.Enabled {
		all = append(all, d.clusterChecks()...)
	}
	all = append(all, d.receiverChecks()...)
	return append(all, deepCheck{"files", d.checkDescriptors}, deepCheck{"clock", checkClock})
}

// runDeep runs all checks at the same time, each with its own deadline, and calls tell for each in their order.
func runDeep(ctx context.Context, checks []deepCheck, tell func(deepFinding) error) error {
	results := make([]chan finding, len(checks))
	for i, check := range checks {
		results[i] = make(chan finding, 1)
		go func() { results[i] <- check.bounded(ctx) }()
	}
	for i, check := range checks {
		if err := tell(deepFinding{check.name, <-results[i]}); err != nil {
			return err
		}
	}
	return nil
}

// bounded runs a check, and gives it up at its deadline: some calls cannot be interrupted, such as those of a network file system that
// hangs.
func (k deepCheck) bounded(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	done := make(chan finding, 1)
	go func() { done <- k.run(ctx) }()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
	}
	select {
	case f := <-done: // its own error says more
		return f
	case <-time.After(time.Second):
		return failed("no answer within %s: what it asks is not reached, or hangs", checkTime)
	}
}

// printDeep runs the checks and prints a line for each. It returns how many are warnings, and an error if any has failed.
func printDeep(ctx context.Context, out io.Writer, c *config.Config) (warnings int, err error) {
	return tellDeep(ctx, c, func(f deepFinding) error {
		_, err := fmt.Fprintf(out, "%-7s  %s: %s\n", f.Level, f.Check, term.Clean(f.Text))
		return err
	})
}

// deepFindings runs the checks and returns what they have found, and an error if any has failed.
func deepFindings(ctx context.Context, c *config.Config) (all []deepFinding, err error) {
	_, err = tellDeep(ctx, c, func(f deepFinding) error {
		all = append(all, f)
		return nil
	})
	return all, err
}

// tellDeep runs the checks and calls tell for each, with a text of one line. It returns how many are warnings, and an error if any has failed.
func tellDeep(ctx context.Context, c *config.Config, tell func(deepFinding) error) (warnings int, err error) {
	failures := 0
	err = runDeep(ctx, newDeep(ctx, c).checks(), func(f deepFinding) error {
		switch f.Level {
		case levelWarning:
			warnings++
		case levelFailed:
			failures++
		}
		f.Text = strings.Join(strings.Fields(f.Text), " ")
		return tell(f)
	})
	if err == nil && failures > 0 {
		err = fmt.Errorf("checks that have failed: %d", failures)
	}
	return warnings, err
}

// advice says what to do about an error, if that is known, after a semicolon.
func advice(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "; correct the name, or the DNS of this machine"
	case errors.Is(err, unix.ECONNREFUSED) || strings.Contains(err.Error(), "connection refused"):
		return "; nothing listens there: start it, or correct the address"
	case errors.Is(err, fs.ErrPermission):
		return "; give " + source.ProcessUser() + " the right, or run this as the user of the service"
	case errors.Is(err, fs.ErrNotExist):
		return "; create it, or correct the path"
	case errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "no answer within"):
		return "; a firewall may drop the packets, or the server hangs"
	case errors.Is(err, unix.ENOSPC):
		return "; make room on the disk"
	case errors.Is(err, unix.EROFS):
		return "; the file system is read-only: remount it, or use another directory"
	}
	return ""
}
