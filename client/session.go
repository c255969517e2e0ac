package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"sequins/internal/names"
)

// A Session reads monotonically: a read that begins after another one has returned never has a value from an older
// version of that database, whichever nodes answer. A node that is not as new yet is passed over; if all are, a read
// waits until its context ends, also if that version has been withdrawn for good: after ErrBehind, begin a new
// session if an older version is acceptable. Databases are independent of each other. A Session is safe for concurrent use, and
// holds no resources.
type Session struct {
	c *Client

	mu   sync.Mutex
	seen map[string]string // the newest version, by db
}

// maxSession limits the length of an exported session in bytes.
const maxSession = 64 << 10

// Session returns a session that has seen nothing.
func (c *Client) Session() *Session { return &Session{c: c, seen: map[string]string{}} }

// ResumeSession returns the session that String has exported, of this or of another program. Whoever can forge the
// string can only make reads of that session wait for versions that do not exist.
func (c *Client) ResumeSession(exported string) (*Session, error) {
	if len(exported) > maxSession {
		return nil, fmt.Errorf("%w: a session of %d bytes", ErrInvalid, len(exported))
	}
	values, err := url.ParseQuery(exported)
	if err != nil {
		return nil, fmt.Errorf("%w: a session that cannot be read: %w", ErrInvalid, err)
	}
	s := c.Session()
	for db, versions := range values {
		for _, version := range versions {
			if !names.Valid(db) || !names.Valid(version) {
				return nil, fmt.Errorf("%w: a session with %.100q of %.100q", ErrInvalid, version, db)
			}
			s.advance(db, version)
		}
	}
	return s, nil
}

// String exports the session for ResumeSession, as db=version pairs joined by '&', sorted. It fits into a cookie if
// there are few databases.
func (s *Session) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := url.Values{}
	for db, version := range s.seen {
		values.Set(db, version)
	}
	return values.Encode()
}

// Get is Client.Get from the newest version that the session has seen, or a later one. The error wraps ErrBehind if
// no node serves one.
func (s *Session) Get(ctx context.Context, db string, key []byte) (Value, error) {
	v, err := s.c.get(ctx, db, key, s.version(db))
	if err == nil || errors.Is(err, ErrNotFound) {
		s.advance(db, v.Version)
	}
	return v, err
}

// MultiGet is Client.MultiGet from the newest version that the session has seen, or a later one.
func (s *Session) MultiGet(ctx context.Context, db string, keys [][]byte) (Batch, error) {
	b, err := s.c.multiGet(ctx, db, keys, s.version(db))
	if err == nil && b.Version != "" {
		s.advance(db, b.Version)
	}
	return b, err
}

func (s *Session) version(db string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[db]
}

// advance records a version that was seen.
func (s *Session) advance(db, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[db] = max(s.seen[db], version)
}
