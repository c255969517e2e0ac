package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"sequins/config"
	"sequins/source"
)

// checkTime is how long each check of check-config --deep may take.
const checkTime = 15 * time.Second

// finding is the result of a check: what was found or what is wrong. What is wrong is, as far as it can be, the error of the thing itself.
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

// failedBy is the finding for an error. What the user of this command may do is not always what the service may do.
func failedBy(err error) finding {
	if errors.Is(err, fs.ErrPermission) {
		return failed("%v; this runs as %s: run it as the user of the service", err, source.ProcessUser())
	}
	return failed("%v", err)
}

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

	source func() (source.Source, error)
	newest func() (newestVersions, error)
	zk     func() (ensemble, error)
}

// newDeep returns the checks' state. What they share is found out once, when the first of them needs it.
func newDeep(ctx context.Context, c *config.Config) *deep {
	d := &deep{c: c}
	d.source = sync.OnceValues(func() (source.Source, error) { return openSource(ctx, c) })
	d.newest = sync.OnceValues(func() (newestVersions, error) { return d.listNewest(ctx) })
	d.zk = sync.OnceValues(func() (ensemble, error) { return d.probeZooKeeper(ctx) })
	return d
}

// checks returns the checks that apply to the configuration, in the order in which they are shown.
func (d *deep) checks() []deepCheck {
	all := []deepCheck{{"source", d.checkSource}, {"fields", d.checkFields}, {"secrets", d.checkSecrets}, {"local_store", d.checkStore}, {"disk", d.checkDisk}}
	for _, a := range []struct{ key, address string }{{"bind", d.c.Bind}, {"debug.bind", d.c.Debug.Bind}, {"redis.bind", d.c.Redis.Bind}} {
		if a.address != "" {
			all = append(all, deepCheck{a.key, func(context.Context) finding { return d.checkAddress(a.key, a.address) }})
		}
	}
	if d.c.TLS.Certificate != "" || d.c.ZK.TLS {
		all = append(all, deepCheck{"certificates", d.checkCertificates})
	}
	if d.c.Sharding.Enabled {
		all = append(all, deepCheck{"zk", d.checkZooKeeper}, deepCheck{"sharding.advertised_hostname", d.checkAdvertised}, deepCheck{"other nodes", d.checkNodes})
	}
	return append(all, d.receiverChecks()...)
}

// runDeep runs checks at the same time, each with its own deadline, and returns what they have found, each in one line.
func runDeep(ctx context.Context, checks []deepCheck) []deepFinding {
	results := make([]deepFinding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() {
			f := check.bounded(ctx)
			f.Text = strings.Join(strings.Fields(f.Text), " ")
			results[i] = deepFinding{check.name, f}
		})
	}
	all.Wait()
	return results
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

// judge returns how many findings are warnings, and an error if any has failed.
func judge(all []deepFinding) (warnings int, err error) {
	failures := 0
	for _, f := range all {
		switch f.Level {
		case levelWarning:
			warnings++
		case levelFailed:
			failures++
		}
	}
	if failures > 0 {
		err = fmt.Errorf("checks that have failed: %d", failures)
	}
	return warnings, err
}
