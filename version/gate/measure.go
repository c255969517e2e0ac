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
	"sequins/internal/content"
	"sequins/store"
	"sequins/version"
	"sequins/version/report"
)

const (
	// A sample has about sampled keys of all partitions of the version that is served that are on this node: at least minSampled of each, but at most
	// maxSampled in all, and one of each. They are those of pages that are spread over the block, keysOfPage of each. With 1,000 keys, a share of 5 %
	// is known to 1.4 % in 19 of 20 cases; the sample takes less than 1 % of the time of the load.
	sampled    = 1000
	minSampled = 16
	maxSampled = 20_000
	keysOfPage = 8
	// maxMatched is how much of a value a pattern is compared with, in bytes.
	maxMatched = 1 << 20
)

// Measures are what a node has looked up in the blocks of a content that it holds. They are not modified.
type Measures struct {
	// Held reports for each partition whether its block was on this node.
	Held []bool
	// Rules is the fingerprint of the rules that the other fields are by.
	Rules string
	// Sample is of keys of Against, which is zero if none was taken.
	Sample  report.Sample
	Against content.Content
	// Failed are those of Rules.Required that the partitions of this node lack, with the reasons.
	Failed []string
	// Err is the first error of reading the content, or that of the context: the other fields are not complete.
	Err error
}

// IsCurrent reports whether m, which may be nil, has what the rules need beside figures of all partitions that are held. served is the
// content to compare with; zero if there is none.
func (m *Measures) IsCurrent(held []bool, rules Rules, served content.Content) bool {
	if m == nil || m.Err != nil || len(m.Held) != len(held) || m.Rules != rules.Fingerprint() {
		return false
	}
	for p, here := range held {
		if here && !m.Held[p] {
			return false
		}
	}
	return rules.MaxMissing <= 0 || served == content.Content{} || m.Against == served
}

type measurement struct {
	Measures
	h       *version.Handle
	scratch blocks.Scratch
}

// Measure looks up what the rules need beside the figures of the partitions of a content that are on this node: the required keys and, if served is not
// nil and a rule needs it, a sample of the keys of its partitions on this node.
func Measure(ctx context.Context, h, served *version.Handle, rules Rules) Measures {
	m := measurement{h: h, Measures: Measures{Held: h.Held(), Rules: rules.Fingerprint()}}
	for _, r := range rules.Required {
		m.require(r)
	}
	if served != nil && rules.MaxMissing > 0 {
		m.takeSample(ctx, served)
	}
	if m.Err == nil {
		m.Err = ctx.Err()
	}
	return m.Measures
}

func (m *measurement) note(p int, err error) {
	if m.Err == nil && err != nil {
		m.Err = fmt.Errorf("partition %d: %w", p, err)
	}
}

// get looks a key up. ok is false if its partition p is not here, or cannot be read.
func (m *measurement) get(key []byte) (p int, value blocks.Value, found, ok bool) {
	if m.h.Partitions > 0 {
		p = m.h.Partition(key)
	}
	value, found, err := m.h.Get(p, key, &m.scratch)
	if !errors.Is(err, version.ErrNotLocal) {
		m.note(p, err)
	}
	return p, value, found, err == nil
}

// require looks a required key up.
func (m *measurement) require(r Required) {
	p, value, found, ok := m.get([]byte(r.Key))
	if ok && !found {
		m.Failed = append(m.Failed, fmt.Sprintf("key %.60q is missing", r.Key))
	}
	if !found || r.Value == nil {
		return
	}
	section := value.Section(0, min(value.Len(), maxMatched))
	data, err := io.ReadAll(section)
	m.note(p, errors.Join(err, section.Close()))
	if !r.Value.Match(data) {
		m.Failed = append(m.Failed, fmt.Sprintf("the value of key %.60q does not match %.60q", r.Key, r.Value))
	}
}

// takeSample looks up keys of each partition of the served content that is on this node. One that cannot be read is left out: damage of that content
// must not keep another one from being served.
func (m *measurement) takeSample(ctx context.Context, served *version.Handle) {
	m.Against = served.Content
	held := 0
	for _, here := range served.Held() {
		if here {
			held++
		}
	}
	held = max(1, held)
	n := max(1, min(max(minSampled, sampled/held), maxSampled/held))
	for p := 0; p < served.Partitions && ctx.Err() == nil; p++ {
		for _, key := range sampleKeys(served, p, n) {
			if _, _, found, ok := m.get(key); ok {
				m.Sample.Keys++
				if !found {
					m.Sample.Missing++
				}
			}
		}
	}
}

// sampleKeys returns about n keys of a partition, the same ones on every node.
func sampleKeys(served *version.Handle, p, n int) (keys [][]byte) {
	b := served.Block(p)
	r, ok := b.(interface {
		SampleKeys(pages, n int, rng *rand.Rand, f func(key []byte)) error
	})
	if !ok {
		return nil // it is not here
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s/%d", served.Name, p)
	rng := rand.New(rand.NewPCG(seed.Sum64(), 0))
	err := r.SampleKeys(max(1, n/keysOfPage), n, rng, func(key []byte) { keys = append(keys, bytes.Clone(key)) })
	if err != nil {
		served.Report(p, b, err)
	}
	return keys
}

// NewReport returns the report of a content of a node that serves another one, the same one, or none. blocks are the figures of the partitions
// that it holds, and are not modified before the report is encoded. m may be nil; f is Verdict.Own, or Verdict.Finding from when the content was judged,
// if the node serves it or has served it: that is not Pending.
func NewReport(served content.Content, rules Rules, blocks map[int]report.Figures, m *Measures, f store.Finding) report.Report {
	r := report.Report{Rules: rules.Fingerprint(), Finding: f, Served: served, Blocks: blocks}
	if f.State == "" { // it was never judged
		r.Finding.State = store.Passed
	}
	if m != nil && m.Err == nil && m.Against == served && m.Rules == r.Rules {
		r.Sample = m.Sample
	}
	return r
}
