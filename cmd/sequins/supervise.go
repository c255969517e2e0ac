package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// endPatience is how long a process may take to end after a signal: requests in flight have 30 seconds.
const endPatience = 45 * time.Second

// untilSignal runs a function and cancels its context on SIGINT or SIGTERM. A second signal exits immediately, and so does
// a function that has not returned within patience, because it waits for a disk that does not answer. SIGHUP calls reload,
// which must not block; if reload is nil, SIGHUP is treated like SIGTERM.
func untilSignal(ctx context.Context, log *slog.Logger, patience time.Duration, reload func(), run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if s == syscall.SIGHUP && reload != nil {
				reload()
				continue
			}
			if ctx.Err() != nil {
				log.Error("a second signal: exiting at once", "signal", s)
				os.Exit(128 + int(s.(syscall.Signal))) // as in shells
			}
			log.Info("signal: finishing what is in flight; another one exits at once", "signal", s)
			cancel()
			late = time.After(patience)
		case <-late:
			log.Error("exiting although something does not end; a file of the store, the source or the configuration may not answer", "after", patience)
			os.Exit(exitFailure)
		}
	}
}
