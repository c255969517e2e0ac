package resp

import (
	"log/slog"
	"time"

	"sequins/internal/conns"
	"sequins/observe/metrics"
	"sequins/server/auth"
)

// Options are the settings of a Server.
type Options struct {
	// Read limits the time for a whole command, from its first byte; also for the first command of a client that must
	// authenticate. 0 means 10s.
	Read time.Duration
	// Idle limits the time between two commands; 0 means no limit.
	Idle time.Duration
	// Write limits the time in which a client receives each 64 KiB of its answers; 0 means 30s.
	Write time.Duration
	// Conns gets the listeners and connections, and is required. Its owner drains and closes them.
	Conns *conns.Set
	// Tokens are the access rights; nil allows everything.
	Tokens *auth.Tokens
	// Exists, which is required, reports whether there is a db, or may be, for SELECT. It must not keep the name.
	Exists func(db []byte) bool
	// Build is the version of the program, for INFO.
	Build string
	// Metrics counts failed authentication; it may be nil.
	Metrics *metrics.Server
	// Logger logs errors; nil means slog.Default().
	Logger *slog.Logger
}
