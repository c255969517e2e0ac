package parquet

import "io"

// A stream reads a part of a file forward, through a buffer of its own.
type stream struct {
	r      *tail
	next   int64 // offset of what is read into the buffer next
	end    int64 // of the part
	buffer []byte
	unread []byte // of the buffer
}

// seek begins to read at from; end is the end of the part.
func (s *stream) seek(from, end int64) {
	s.next, s.end, s.unread = from, end, nil
}

// at returns the offset of the next byte.
func (s *stream) at() int64 { return s.next - int64(len(s.unread)) }

// left returns how many bytes the part still has.
func (s *stream) left() int64 { return s.end - s.at() }

// peek returns the next n bytes, or fewer if the part has fewer. They are valid until the next call. Where n is
// more than the buffer has room for, they are in memory of their own.
func (s *stream) peek(n int) ([]byte, error) {
	n = int(min(int64(n), s.left()))
	if n <= len(s.unread) {
		return s.unread[:n], nil
	}
	if n > len(s.buffer) {
		b := make([]byte, n)
		return b, s.r.readFull(b, s.at())
	}
	kept := copy(s.buffer, s.unread)
	m := int(min(int64(len(s.buffer)-kept), s.end-s.next))
	if err := s.r.readFull(s.buffer[kept:kept+m], s.next); err != nil {
		return nil, err
	}
	s.next += int64(m)
	s.unread = s.buffer[:kept+m]
	return s.unread[:n], nil
}

// skip passes over n bytes, which the part must have.
func (s *stream) skip(n int64) {
	if n <= int64(len(s.unread)) {
		s.unread = s.unread[n:]
		return
	}
	s.next += n - int64(len(s.unread))
	s.unread = nil
}

// read fills p.
func (s *stream) read(p []byte) error {
	if int64(len(p)) > s.left() {
		return io.ErrUnexpectedEOF
	}
	if len(p) > len(s.unread) && len(p) <= len(s.buffer) {
		if _, err := s.peek(len(p)); err != nil {
			return err
		}
	}
	n := copy(p, s.unread)
	s.unread = s.unread[n:]
	if n == len(p) {
		return nil
	}
	err := s.r.readFull(p[n:], s.next)
	s.next += int64(len(p) - n)
	return err
}
