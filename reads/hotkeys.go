package reads

import (
	"cmp"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"sequins/observe/status"
)

const (
	// sampleEvery is the number of keys that clients read for each that is sampled.
	sampleEvery = 32
	// maxSamples is the number of samples that are kept of a db, in up to 80 KiB, and samplePeriod for how long they count.
	maxSamples   = 512
	samplePeriod = 5 * time.Minute
	// minSamples is the number of samples of a key that HotKeys returns, and topKeys the number of its keys.
	minSamples = 3
	topKeys    = 10
	// maxName is the number of bytes of a key that are kept.
	maxName = 128
)

// samples are the keys of a db that clients have read last, of a random 1 in sampleEvery.
type samples struct {
	mu   sync.Mutex
	ring []sample
	next int // the oldest, once the ring is full
}

type sample struct {
	name string // the beginning of the key
	at   time.Time
}

// SetShowKeys replaces Options.ShowKeys.
func (rd *Reader) SetShowKeys(show bool) { rd.showKeys.Store(show) }

// observe samples a read of a key by a client.
func (r *Read) observe(key []byte) {
	if !r.reader.showKeys.Load() || mathrand.Uint32N(sampleEvery) != 0 {
		return
	}
	s := sample{string(key[:min(len(key), maxName)]), r.start}
	to := &r.db.samples
	to.mu.Lock()
	defer to.mu.Unlock()
	if len(to.ring) < maxSamples {
		to.ring = append(to.ring, s)
		return
	}
	to.ring[to.next] = s
	to.next = (to.next + 1) % maxSamples
}

// HotKeys returns the keys of a db that clients have read most from this node, of the last samples. There are none if keys must not be shown.
func (rd *Reader) HotKeys(db string, now time.Time) []status.HotKey {
	d := (*rd.databases.Load())[db]
	if d == nil || !rd.showKeys.Load() {
		return nil
	}
	total, first := 0.0, now
	counts := map[string]float64{}
	d.samples.mu.Lock()
	for _, s := range d.samples.ring {
		if now.Sub(s.at) > samplePeriod {
			continue
		}
		total++
		counts[s.name]++
		if s.at.Before(first) {
			first = s.at
		}
	}
	d.samples.mu.Unlock()
	seconds := max(now.Sub(first).Seconds(), 1)
	var all []status.HotKey
	for name, n := range counts {
		if n >= minSamples {
			all = append(all, status.HotKey{Key: string(AppendEscaped(nil, []byte(name))), Share: round(n/total, 1e4), PerSecond: round(n*sampleEvery/seconds, 10)})
		}
	}
	slices.SortFunc(all, func(a, b status.HotKey) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(len(all), topKeys)]
}

// round rounds an estimate to 1/unit.
func round(x, unit float64) float64 { return math.Round(x*unit) / unit }
