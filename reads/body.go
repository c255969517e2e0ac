package reads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/proxy"
)

// Body reads a value, from the local block or from another node. A block or a node that fails in the middle is replaced by other nodes. If
// none is left, Read fails, Outcome is the reason, and a scan has ended. If nothing of the value of Do can be read from the block, Outcome is
// Unreadable at once: Retry asks other nodes as for a value that is not here, with the conditions and the range of the request.
type Body struct {
	// Outcome is Found, or why Read failed: Unreadable, Unreachable, GivenUp or TooSlow.
	Outcome Outcome

	r       *Read
	ctx     context.Context // of requests to other nodes
	scan    *Scan           // of the record; nil for the value of Do
	key     []byte
	value   blocks.Value  // while local
	local   bool          // it is read from the block
	partial bool          // the answer of a node is a part of the value, and has no replacement
	source  io.ReadCloser // reads from off on; nil until it is needed
	peer    string        // the address that source is of
	broken  []string      // addresses whose answers have broken off
	off     int64
	size    int64
	failed  int // sources
	sent    int64
	begun   bool // the answer's header has been sent
	err     error
}

// maxFailures limits the sources of a value that fail.
const maxFailures = 4

// After leavingGrace, a client of a version that is being removed must have read leavingRate bytes per second
// on average. The version's files cannot be deleted before the client is done.
const (
	leavingRate  = 32 << 10
	leavingGrace = 10 * time.Second
)

var errTooSlow = errors.New("the version or a block of it is being removed, and the client reads too slowly")

// Body returns the value after Do returned Found.
func (r *Read) Body() *Body { return &r.body }

// Retry returns the outcome after Body has failed and nothing was sent. If it is Unreadable, other nodes are asked, and Result and Body are those of
// their answer.
func (r *Read) Retry() Outcome {
	if o := r.body.Outcome; o != Unreadable {
		return o
	}
	r.Result, r.body = Result{Version: r.Version, Content: r.Content}, Body{}
	return r.elsewhere(true)
}

// Open returns the current value if it is large. It can be opened several times, and must be closed before Next.
func (s *Scan) Open() *Body {
	_, local := s.current.Source.(*localSource)
	return &Body{r: s.r, ctx: s.ctx, scan: s, key: s.current.Key, value: s.item.local, local: local, size: s.item.length}
}

// Read implements io.Reader. An error of a local block is logged and reported to the version's owner; damage
// wraps blocks.ErrCorrupt.
func (b *Body) Read(p []byte) (int, error) {
	var lost error // why the source before has failed
	for b.err == nil && b.off < b.size {
		if b.scan == nil && b.local && b.r.delaysRemoval(b.sent, time.Since(b.r.start)) {
			b.fail(errTooSlow)
			break
		}
		if b.source == nil {
			if err := b.open(); err != nil {
				b.fail(cmp.Or(lost, err))
				break
			}
		}
		n, err := b.source.Read(p[:min(int64(len(p)), b.size-b.off)])
		b.off, b.sent = b.off+int64(n), b.sent+int64(n)
		if err == nil || n > 0 {
			return n, nil // an error comes again
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		lost = err
		b.lose(err)
	}
	if b.err != nil {
		return 0, b.err
	}
	return 0, io.EOF
}

// Sendable reports whether SendTo may send what is next.
func (b *Body) Sendable() bool {
	return b.local && b.err == nil && b.value.Sendable(b.off) && !b.r.delaysRemoval(b.sent, time.Since(b.r.start))
}

// SendTo sends what is next to a socket, behind the header: see [blocks.Value.SendTo].
func (b *Body) SendTo(socket int) (n int, done bool) {
	b.begun = true
	if n, done = b.value.SendTo(socket, b.off); n > 0 {
		b.Close() //nolint:errcheck // it was only read from
		b.off, b.sent = b.off+int64(n), b.sent+int64(n)
	}
	return n, done
}

// open begins to read from off on: from the block, or from another node.
func (b *Body) open() error {
	r := b.r
	switch {
	case b.local:
		b.source = b.value.Section(b.off, b.size-b.off)
		return nil
	case r.reader.opts.Proxy == nil || r.query.fromPeer():
		return errors.New("no other node can be asked")
	}
	peers := r.peers(r.handle.Partition(b.key))
	whole := slices.DeleteFunc(slices.Clone(peers), func(addr string) bool { return slices.Contains(b.broken, addr) })
	if len(whole) > 0 {
		peers = whole
	}
	q := r.pageQuery(&PageRequest{kind: pageValue, interval: interval{start: b.key}}, peers, 1, r.fields(nil))
	err := r.fetch(b.ctx, q, func(a *proxy.Answer) (err error) {
		if a.Status != http.StatusOK || a.Length != b.size {
			err = fmt.Errorf("%w: status %d, a value of %d bytes instead of %d", errPage, a.Status, a.Length, b.size)
		} else {
			_, err = io.CopyN(io.Discard, a.Body, b.off)
		}
		if err != nil {
			a.Body.Close() //nolint:errcheck // it was only read from
			return err
		}
		b.source, b.peer = a.Body, a.Peer
		return nil
	})
	if err != nil {
		r.fetchError(peers, err)
	}
	return err
}

// lose closes a source that has failed. Read goes on with another one, unless there have been too many, or it was a part of the value.
func (b *Body) lose(err error) {
	// Nothing has been sent, and other nodes are asked as for a value that is not here: see Retry.
	unread := b.local && b.scan == nil && b.sent == 0 && !b.begun
	b.Close() //nolint:errcheck // it was only read from
	if b.local {
		b.local = false
		partition := b.r.handle.Partition(b.key)
		b.r.report(partition, b.value.Reader(), err)
		if b.scan != nil {
			b.scan.lost[partition] = true
		}
	} else {
		b.broken = append(b.broken, b.peer)
		b.r.reader.log.Error("reading a peer's answer", "target", b.r.target(), "error", err)
	}
	if b.failed++; unread || b.failed == maxFailures || b.partial || errors.Is(err, proxy.ErrSlow) || b.ctx.Err() != nil {
		b.fail(err)
	}
}

func (b *Body) fail(err error) {
	b.err = err
	switch {
	case errors.Is(err, errTooSlow):
		b.Outcome = TooSlow
		b.r.reader.log.Error("a client was cut off", "target", b.r.target(), "version", b.r.handle.Name, "error", err)
	case errors.Is(err, proxy.ErrSlow):
		b.Outcome = TooSlow
	case b.ctx.Err() != nil:
		b.Outcome = GivenUp
	case b.value.Large(): // and its block could not be read
		b.Outcome = Unreadable
	default:
		b.Outcome = Unreachable
	}
	if b.scan != nil {
		b.scan.Fail(b.Outcome)
	}
}

// Seek implements io.Seeker.
func (b *Body) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.off
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 || offset > b.size {
		return 0, errors.New("seeking outside of the value")
	}
	if offset != b.off {
		b.Close() //nolint:errcheck // it was only read from
		b.off = offset
	}
	return offset, nil
}

// Close closes the source.
func (b *Body) Close() error {
	if b.source == nil {
		return nil
	}
	err := b.source.Close()
	b.source = nil
	return err
}

// delaysRemoval reports whether a client that has received sent bytes, for which this node has waited so long, delays the removal of the
// version for too long.
func (r *Read) delaysRemoval(sent int64, waited time.Duration) bool {
	late := waited - leavingGrace
	return late > 0 && float64(sent) < late.Seconds()*leavingRate && r.handle.Leaving()
}
