package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"

	"sequins/blocks"
	"sequins/version"
)

const (
	// A sample has about sampled keys of all partitions of the version that is served that are on this node: at least
	// minSampled of each, but at most maxSampled in all, and one of each. They are those of pages that are spread over
	// the block, keysOfPage of each. With 1,000 keys, a share of 5 % is known to 1.4 % in 19 of 20 cases; the sample takes
	// less than 1 % of the time of the load.
	sampled    = 1000
	minSampled = 16
	maxSampled = 20_000
	keysOfPage = 8
	// maxMatched is how much of a value a pattern is compared with, in bytes.
	maxMatched = 1 << 20
)

// Measured are the figures of a version's partitions on this node.
type Measured struct {
	// Figures are those of each partition; nil for a partition that is not here.
	Figures []*Totals
	Sample  Sample
	Largest int64
	Failed  []string // see Comparison
}

// Measure reads the figures of the partitions of a version that are on this node. If served is not nil, and a rule
// needs it, it looks up a sample of the keys of its partitions on this node. A partition that cannot be read has no
// figures, and is in no sample; the error is that of the first one of the version itself, or of ctx.
func Measure(ctx context.Context, h, served *version.Handle, rules Rules) (m Measured, err error) {
	m.Figures = make([]*Totals, h.Partitions())
	note := func(p int, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("partition %d: %w", p, e)
		}
	}
	for p := range m.Figures {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		note(p, m.measureBlock(h, p))
	}
	for _, r := range rules.Required {
		p, e := m.require(h, r)
		note(p, e)
	}
	if served == nil || !rules.samples() {
		return m, err
	}
	s := sampler{h: h, keys: make([][][]byte, h.Partitions())}
	if err := s.takeAll(ctx, served); err != nil {
		return m, err
	}
	m.Sample.Keys, m.Sample.Missing = s.unowned, s.unowned
	for p, keys := range s.keys {
		note(p, s.lookUp(p, keys, &m.Sample))
	}
	return m, err
}

// measureBlock reads the figures of one partition.
func (m *Measured) measureBlock(h *version.Handle, p int) error {
	b := h.Block(p)
	if b == nil {
		return nil
	}
	if r, ok := b.(interface{ EnsureOpen() error }); ok { // the figures of a block that was never opened are not known
		if err := r.EnsureOpen(); err != nil {
			h.Report(p, b, err)
			return err
		}
	}
	props := b.Properties()
	m.Figures[p] = &Totals{Records: props.Records, Bytes: props.RawBytes}
	m.Largest = max(m.Largest, props.MaxValue)
	return nil
}

// require looks a required key up, if its partition p is here. A key that cannot be read counts as missing until it can.
func (m *Measured) require(h *version.Handle, r Required) (p int, err error) {
	key := []byte(r.Key)
	if h.Partitions() > 0 {
		if p = h.Partition(key); !h.Has(p) {
			return p, nil
		}
	}
	var s blocks.Scratch
	value, found, err := h.Get(p, key, &s)
	var data []byte
	if err == nil && found && r.Value != nil {
		section := value.Section(0, min(value.Len(), maxMatched))
		data, err = io.ReadAll(section)
		err = errors.Join(err, section.Close())
	}
	switch {
	case err != nil:
		m.Failed = append(m.Failed, fmt.Sprintf("key %s cannot be read", quote(r.Key)))
	case !found:
		m.Failed = append(m.Failed, fmt.Sprintf("key %s is missing", quote(r.Key)))
	case r.Value != nil && !r.Value.Match(data):
		m.Failed = append(m.Failed, fmt.Sprintf("the value of key %s does not match %s", quote(r.Key), quote(r.Value.String())))
	}
	return p, err
}

// quote quotes and shortens a key for a text.
func quote(s string) string {
	const longest = 60
	if len(s) > longest {
		return fmt.Sprintf("%q…", s[:longest])
	}
	return fmt.Sprintf("%q", s)
}

// sampler collects keys by their partition.
type sampler struct {
	h       *version.Handle
	keys    [][][]byte
	unowned int64 // keys for a version without partitions
}

// takeAll takes keys of each partition of the version that is served that is on this node. One that cannot be read is
// left out: damage of that version must not keep another one from being served.
func (s *sampler) takeAll(ctx context.Context, served *version.Handle) error {
	held := 0
	for p := range served.Partitions() {
		if served.Has(p) {
			held++
		}
	}
	held = max(1, held)
	n := max(1, min(max(minSampled, sampled/held), maxSampled/held))
	for p := range served.Partitions() {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.take(served, p, n)
	}
	return nil
}

// take takes up to about n keys of a partition. The choice is the same on every node.
func (s *sampler) take(served *version.Handle, p, n int) {
	b := served.Block(p)
	r, ok := b.(interface {
		SampleKeys(pages, n int, rng *rand.Rand, f func(key []byte)) error
	})
	if !ok {
		return // it is not here
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s/%d", served.Version(), p)
	rng := rand.New(rand.NewPCG(seed.Sum64(), 0))
	if err := r.SampleKeys(max(1, n/keysOfPage), n, rng, s.add); err != nil {
		served.Report(p, b, err)
	}
}

func (s *sampler) add(key []byte) {
	if len(s.keys) == 0 {
		s.unowned++
		return
	}
	if p := s.h.Partition(key); s.h.Has(p) {
		s.keys[p] = append(s.keys[p], bytes.Clone(key))
	}
}

// lookUp counts the keys of one partition, and those that are missing; none if one of them cannot be read.
func (s *sampler) lookUp(p int, keys [][]byte, sum *Sample) error {
	results := make([]blocks.Result, len(keys))
	var scratch blocks.BatchScratch
	if len(keys) == 0 {
		return nil
	}
	if err := s.h.GetBatch(p, keys, results, &scratch); err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	for _, r := range results {
		sum.Keys++
		if !r.Found {
			sum.Missing++
		}
	}
	return nil
}
