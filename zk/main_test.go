package zk

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that has to happen, on a busy machine.
const patience = 30 * time.Second

// ensemble is a real ZooKeeper.
type ensemble struct {
	h       *harness.Harness
	connect string // host:port,…
}

func startEnsemble(t *testing.T, options string) *ensemble {
	t.Helper()
	h := harness.Start(t)
	return &ensemble{h: h, connect: h.Do(t, "zk start "+options)["connect"]}
}

// options are those of a session that notices things soon.
func (e *ensemble) options(t *testing.T) Options {
	return Options{
		Servers: []string{e.connect}, ConnectTimeout: time.Second, SessionTimeout: 2 * time.Second,
		Root: "/sequins/v1", Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func (e *ensemble) session(t *testing.T) *Session {
	t.Helper()
	s, err := Connect(e.options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func flush(t *testing.T, s *Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		t.Fatalf("%v; %+v", err, s.Status())
	}
}

// await polls until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
