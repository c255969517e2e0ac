package server

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sequins/reads"
)

// requestLog writes a line at the end of each request, or of a sample of requests:
//
//	2026-01-31T10:00:00.000000Z 200 GET /baby-names/Ada 104 0.000012 version=2026-01-30 lookup=0.000004
//
// The fields are the time when the request had been read, the status, the method, the target (db and key,
// escaped as in a URL), the bytes of the body and the total seconds; then, if applicable, the version, the
// seconds until the block had answered (lookup=), the seconds from there until a peer had answered (peers=),
// and the name of the token (token=). The rest of the total is the time to send the answer. The log can be
// followed: no line waits for others.
type requestLog struct {
	logger *slog.Logger
	sample atomic.Uint32 // 1-in-N requests have a line

	mu     sync.Mutex
	w      io.Writer
	line   []byte
	failed bool // the last write failed
}

func (l *requestLog) sampled() bool {
	n := l.sample.Load()
	return n <= 1 || rand.Uint32N(n) == 0
}

func (l *requestLog) write(r *request, took time.Duration) {
	l.mu.Lock()
	b := r.Start().UTC().AppendFormat(l.line[:0], "2006-01-02T15:04:05.000000Z")
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(r.code), 10)
	b = append(b, ' ')
	b = reads.AppendEscaped(b, []byte(r.method))
	b = append(b, ' ')
	b = r.appendEscaped(b)
	b = append(b, ' ')
	b = strconv.AppendInt(b, r.bytes, 10)
	b = append(b, ' ')
	b = appendSeconds(b, took)
	if len(r.Version) > 0 {
		b = append(append(b, " version="...), r.Version...)
	}
	if r.Lookup > 0 {
		b = appendSeconds(append(b, " lookup="...), r.Lookup)
	}
	if r.Asking > 0 {
		b = appendSeconds(append(b, " peers="...), r.Asking)
	}
	if r.grant != nil {
		b = append(append(b, " token="...), r.grant.Name...)
	}
	l.line = append(b, '\n')
	_, err := l.w.Write(l.line)
	fails := err != nil && !l.failed
	l.failed = err != nil
	l.mu.Unlock()
	if fails {
		l.logger.Error("writing the request log", "error", err)
	}
}

func appendSeconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Seconds(), 'f', 6, 64)
}
