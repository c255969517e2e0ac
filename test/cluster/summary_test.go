//go:build integration

package cluster

import (
	"strings"
	"testing"

	"sequins/test/checker"
	"sequins/test/process"
)

// A summary is the number of answers of each kind.
type summary struct {
	local, proxied, absent, errors, refused int // to reads of keys
	batches, sessions, exact                int // answers to batches, in sessions, and from the version asked for
	ranges, pages, counts                   int // answers to ordered reads: from the beginning, behind a cursor, and numbers
	redis                                   int // answers to commands of Redis
	behind, gone                            int // refusals of a version
}

func (s *summary) count(read checker.Read) {
	switch {
	case read.Code == 0:
		s.refused++
	case read.Code == 503 && read.AtLeast != "":
		s.behind++
	case read.Code == 412, read.Code == 410:
		s.gone++
	case read.Code >= 500:
		s.errors++
	case strings.HasPrefix(read.Session, redisSession):
		s.redis++
		return
	case read.Op == checker.Batch:
		s.batches++
	case read.Op == checker.Count:
		s.counts++
	case read.Op == checker.Range && read.After == "":
		s.ranges++
	case read.Op == checker.Range:
		s.pages++
	case read.Code == 404:
		s.absent++
	case read.Peer != "":
		s.proxied++
	default:
		s.local++
	}
	if read.Code == 200 && read.AtLeast != "" {
		s.sessions++
	}
	if read.Code == 200 && read.Exact != "" {
		s.exact++
	}
}

// awaitAll waits until each kind of answer has come, and logs how much was asked.
func (r *recording) awaitAll(t testing.TB) {
	t.Helper()
	var s summary
	defer func() { t.Logf("answers: %+v", s) }()
	process.Eventually(t, "each kind of answer", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		s = r.seen
		return min(s.local, s.proxied, s.absent, s.batches, s.sessions, s.exact, s.ranges, s.pages, s.counts, s.redis) > 0
	})
}
