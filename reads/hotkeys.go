package reads

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"math"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"sequins/observe/status"
	"sequins/reads/internal/hotkeys"
)

const (
	// sampleEvery is the number of keys that clients read for each that is counted.
	sampleEvery = 32
	// topKeys is the number of keys that HotKeys returns.
	topKeys = 10
	// maxSketches limits the dbs whose keys are counted. A sketch has about 12 KiB, and 16 KiB more with keys.
	maxSketches = 1000
)

// sketches is what the sketches of all dbs share.
type sketches struct {
	seed  maphash.Seed // of the hashes by which sketches know keys
	salt  [32]byte     // of the hashes that are shown
	shown atomic.Bool  // Options.ShowKeys
	n     atomic.Int64
}

func (s *sketches) init() {
	s.seed = maphash.MakeSeed()
	rand.Read(s.salt[:]) //nolint:errcheck // never fails
}

// of returns the sketch of a db, nil if there are too many dbs.
func (s *sketches) of(d *database) *hotkeys.Sketch {
	if known := d.hot.Load(); known != nil {
		return known
	}
	if s.n.Add(1) > maxSketches {
		s.n.Add(-1)
		return nil
	}
	if !d.hot.CompareAndSwap(nil, new(hotkeys.Sketch)) {
		s.n.Add(-1)
	}
	return d.hot.Load()
}

// remove uncounts the sketch of a db that is gone.
func (s *sketches) remove(d *database) {
	if d.hot.Load() != nil {
		s.n.Add(-1)
	}
}

// SetShowKeys replaces Options.ShowKeys. Sketches keep the keys that are read from then on.
func (rd *Reader) SetShowKeys(show bool) { rd.sketches.shown.Store(show) }

// nextSample returns the number of keys to pass over before the next sample. It is random, so that no period of the
// requests decides what is sampled.
func nextSample() int { return mathrand.IntN(2*sampleEvery - 1) }

// observe counts a read of a key by a client, if it is sampled.
func (r *Read) observe(key []byte) {
	if r.untilNext--; r.untilNext < 0 {
		r.sample(key)
	}
}

// observeAll is observe for the keys of a batch.
func (r *Read) observeAll(keys [][]byte) {
	for len(keys) > r.untilNext {
		key := keys[r.untilNext]
		keys = keys[r.untilNext+1:]
		r.sample(key)
	}
	r.untilNext -= len(keys)
}

func (r *Read) sample(key []byte) {
	r.untilNext = nextSample()
	s := &r.reader.sketches
	sketch := s.of(r.db)
	if sketch == nil {
		return
	}
	var name []byte
	if s.shown.Load() {
		name = key[:len(key):len(key)]
		if name == nil {
			name = noBytes
		}
	}
	sketch.Add(maphash.Bytes(s.seed, key), name, r.start)
}

// HotKeys returns the keys of a db that clients have read most from this node in the last minutes.
func (rd *Reader) HotKeys(db string, now time.Time) []status.HotKey {
	d := (*rd.databases.Load())[db]
	if d == nil || d.hot.Load() == nil {
		return nil
	}
	s := &rd.sketches
	var all []status.HotKey
	for _, k := range d.hot.Load().Top(topKeys, sampleEvery, now) {
		h := status.HotKey{Hash: s.hash(db, k.ID), Share: round(k.Share, 1e4), PerSecond: round(k.PerSecond, 10)}
		if s.shown.Load() && k.Name != nil {
			h.Key, h.Truncated = string(AppendEscaped(nil, k.Name)), k.Cut
		}
		all = append(all, h)
	}
	return all
}

// round rounds an estimate to 1/unit.
func round(x, unit float64) float64 { return math.Round(x*unit) / unit }

// hash returns the hash of a key that is shown. It is keyed, as the keys of a db may be few enough to be guessed.
func (s *sketches) hash(db string, id uint64) string {
	h := hmac.New(sha256.New, s.salt[:])
	h.Write(binary.BigEndian.AppendUint64(append([]byte(db), 0), id))
	return hex.EncodeToString(h.Sum(nil)[:8])
}
