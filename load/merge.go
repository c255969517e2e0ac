package load

import (
	"bytes"
	"context"
	"sync"
)

// mergeStreams merges streams with strictly ascending keys. If several have the same key, the record of
// the last stream counts. There are at most as many streams as workers, so a linear search for the
// least key is fast enough.
func mergeStreams(ctx context.Context, fill []func(context.Context, sink) error, add func(key, value []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	heads := make([]head, len(fill))
	for i := range heads {
		heads[i].s = produce(ctx, &wg, fill[i])
	}
	for i := range heads {
		if err := heads[i].next(ctx); err != nil {
			return err
		}
	}
	for {
		least := leastOf(heads)
		if least == nil {
			return nil
		}
		if err := add(least.key, least.value()); err != nil {
			return err
		}
		if err := pass(ctx, heads, least); err != nil {
			return err
		}
	}
}

// leastOf returns the head with the least key, the last one of equal keys; nil at the end of all
// streams.
func leastOf(heads []head) (least *head) {
	for i := range heads {
		h := &heads[i]
		if h.b != nil && (least == nil || bytes.Compare(h.key, least.key) <= 0) {
			least = h
		}
	}
	return least
}

// pass advances all streams that are at the least key.
func pass(ctx context.Context, heads []head, least *head) error {
	for i := range heads {
		h := &heads[i]
		if h != least && h.b != nil && bytes.Equal(h.key, least.key) {
			if err := h.next(ctx); err != nil {
				return err
			}
		}
	}
	return least.next(ctx)
}

// A head is the current record of a stream.
type head struct {
	s   *stream
	b   *batch // nil at the end
	i   int    // index of the record in b
	key []byte
}

func (h *head) next(ctx context.Context) (err error) {
	h.i++
	if h.b == nil || h.i == len(h.b.records) {
		if h.b != nil {
			h.b.release()
		}
		h.i = 0
		if h.b, err = h.s.receive(ctx); h.b == nil || err != nil {
			return err
		}
	}
	h.key = h.b.key(&h.b.records[h.i])
	return nil
}

func (h *head) value() []byte { return h.b.value(&h.b.records[h.i]) }
