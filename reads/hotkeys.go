package reads

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
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
	// maxSamples is the number of samples that are kept of a db, in up to 24 KiB, and samplePeriod for how long they count.
	maxSamples   = 512
	samplePeriod = 5 * time.Minute
	// minSamples is the number of samples of a key that HotKeys returns, and topKeys the number of its keys.
	minSamples = 3
	topKeys    = 10
	// maxName is the number of bytes of a key that are shown.
	maxName = 128
)

// samples are the keys of a db that clients have read last, of a random 1 in sampleEvery.
type samples struct {
	mu   sync.Mutex
	ring []sample
	next int // the oldest, once the ring is full
}

type sample struct {
	id   uint64 // the hash of the key
	name string // the beginning of the key, if keys are shown
	at   time.Time
}

// SetShowKeys replaces Options.ShowKeys, for the keys that are read from then on.
func (rd *Reader) SetShowKeys(show bool) { rd.showKeys.Store(show) }

// observe samples a read of a key by a client.
func (r *Read) observe(key []byte) {
	if mathrand.Uint32N(sampleEvery) != 0 {
		return
	}
	s := sample{id: maphash.Bytes(r.reader.seed, key), at: r.start}
	if r.reader.showKeys.Load() {
		s.name = string(key[:min(len(key), maxName+1)])
	}
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

// HotKeys returns the keys of a db that clients have read most from this node, of the last samples.
func (rd *Reader) HotKeys(db string, now time.Time) []status.HotKey {
	d := (*rd.databases.Load())[db]
	if d == nil {
		return nil
	}
	total, first := 0.0, now
	counts, names := map[uint64]float64{}, map[uint64]string{}
	d.samples.mu.Lock()
	for _, s := range d.samples.ring {
		if now.Sub(s.at) > samplePeriod {
			continue
		}
		total++
		counts[s.id]++
		if s.name != "" {
			names[s.id] = s.name
		}
		if s.at.Before(first) {
			first = s.at
		}
	}
	d.samples.mu.Unlock()
	seconds := max(now.Sub(first).Seconds(), 1)
	var all []status.HotKey
	for id, n := range counts {
		if n < minSamples {
			continue
		}
		h := status.HotKey{Hash: rd.shownHash(db, id), Share: round(n/total, 1e4), PerSecond: round(n*sampleEvery/seconds, 10)}
		if name := []byte(names[id]); rd.showKeys.Load() {
			h.Key, h.Truncated = string(AppendEscaped(nil, name[:min(len(name), maxName)])), len(name) > maxName
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b status.HotKey) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Hash, b.Hash))
	})
	return all[:min(len(all), topKeys)]
}

// round rounds an estimate to 1/unit.
func round(x, unit float64) float64 { return math.Round(x*unit) / unit }

// shownHash returns the hash of a key that is shown. It is salted, as the keys of a db may be few enough to be guessed.
func (rd *Reader) shownHash(db string, id uint64) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append(rd.salt[:], db...), id))
	return hex.EncodeToString(sum[:8])
}
