package server

import (
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// requestLog writes a line for each request, at its end:
//
//	2026-01-31T10:00:00.000000Z 200 GET /baby-names/Ada 104 0.000012
//
// when it had been read, the status, the method, what was asked for (db and
// key, escaped as in a URL), the bytes of the body and the seconds it took.
// Every line goes out by itself, so that they can be followed.
type requestLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	w      io.Writer
	line   []byte
	failed bool // the last time
}

func (l *requestLog) write(r *request, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := r.start.UTC().AppendFormat(l.line[:0], "2006-01-02T15:04:05.000000Z")
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(r.code), 10)
	b = append(b, ' ')
	b = appendEscaped(b, r.ctx.Method())
	b = append(b, ' ')
	b = r.appendEscaped(b)
	b = append(b, ' ')
	b = strconv.AppendInt(b, r.bytes, 10)
	b = append(b, ' ')
	b = strconv.AppendFloat(b, took.Seconds(), 'f', 6, 64)
	l.line = append(b, '\n')
	_, err := l.w.Write(l.line)
	if err != nil && !l.failed {
		l.logger.Error("writing the request log", "error", err)
	}
	l.failed = err != nil
}
