package reads

import (
	"encoding/base64"
	"slices"
	"time"
	"unicode/utf8"
)

// An Explanation is how a key was looked up, step by step. It holds nothing of the value but its size and
// hash.
type Explanation struct {
	DB string `json:"db"`
	// Key is the key if it is UTF-8; if not it is in KeyBase64.
	Key       string `json:"key,omitempty"`
	KeyBase64 string `json:"key_base64,omitempty"`
	Version   string `json:"version"`
	// Hash is what Partitioner makes of the key, before it is divided by Partitions: the remainder is the
	// Partition.
	Partitioner string `json:"partitioner"`
	Hash        int32  `json:"hash"`
	Partition   int    `json:"partition"`
	Partitions  int    `json:"partitions"`
	// Replicas are the nodes that hold the partition, as far as this one knows: itself if it does, and the
	// others in order.
	Replicas []string `json:"replicas"`

	// Found reports whether the key is in the version. Status is what a GET is answered with now, and Error,
	// where it is not 200, why. The front end fills them in.
	Found  bool   `json:"found"`
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
	// AnsweredBy is "local", or the address of the peer; "" if nobody has.
	AnsweredBy string `json:"answered_by"`
	// Block is where the key is, or would be, in the block of this node; nil if it has none, or if no page
	// of that can hold the key.
	Block *BlockPlace `json:"block,omitempty"`
	// Size of the value in bytes, and its ETag, which is a hash of it.
	Size int64  `json:"size,omitempty"`
	ETag string `json:"etag,omitempty"`

	Microseconds Steps `json:"microseconds"`
}

// BlockPlace is a page of a block.
type BlockPlace struct {
	File       string `json:"file"`
	Page       int    `json:"page"` // counted from 0
	Pages      int    `json:"pages"`
	Offset     int64  `json:"offset"`
	Length     int    `json:"length"`
	Compressed bool   `json:"compressed"`
}

// Steps are how long each step of a lookup has taken, in microseconds.
type Steps struct {
	Version   float64 `json:"version"`   // reading the request, finding the version
	Partition float64 `json:"partition"` // hashing the key
	Block     float64 `json:"block"`     // looking into the block here, or finding that there is none
	Peers     float64 `json:"peers"`     // asking other nodes; 0 if none was asked
	Total     float64 `json:"total"`
}

// laps records the end of each step.
type laps struct {
	last  time.Time
	taken [4]float64 // microseconds
}

// The steps of a read.
const (
	lapVersion = iota
	lapPartition
	lapBlock
	lapPeers
)

// Record makes Do note how long its steps take, for Explain.
func (r *Read) Record() { r.laps = &laps{last: r.start} }

// lap ends a step.
func (r *Read) lap(step int) {
	if r.laps == nil {
		return
	}
	now := time.Now()
	r.laps.taken[step] = micros(now.Sub(r.laps.last))
	r.laps.last = now
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }

// Explain returns how the key was looked up by Do, after Record; nil if there was no version to ask.
func (r *Read) Explain(outcome Outcome) *Explanation {
	if r.handle == nil {
		return nil
	}
	h, key := r.handle, r.query.Key
	e := &Explanation{DB: r.db.name, Version: h.Version(), Partitioner: h.Partitioner().String(), Partitions: h.Partitions(), Replicas: []string{}}
	if utf8.Valid(key) {
		e.Key = string(key)
	} else {
		e.KeyBase64 = base64.StdEncoding.EncodeToString(key)
	}
	if e.Partitions == 0 {
		return e
	}
	e.Hash, e.Partition = h.Partitioner().Hash(key), r.partition
	t := r.laps.taken
	e.Microseconds = Steps{Version: t[lapVersion], Partition: t[lapPartition], Block: t[lapBlock], Peers: t[lapPeers], Total: micros(time.Since(r.start))}
	if outcome == Found || outcome == Absent {
		e.AnsweredBy = "local"
		if r.Peer != "" {
			e.AnsweredBy = r.Peer
		}
	}
	if outcome == Found {
		e.Found, e.Size, e.ETag = true, max(0, r.Length), string(r.ETag)
	}
	r.explainPlace(e)
	return e
}

// explainPlace adds which nodes hold the partition, and where the key is in the block of this one.
func (r *Read) explainPlace(e *Explanation) {
	h := r.handle
	if r.local {
		e.Replicas = append(e.Replicas, r.reader.opts.Name)
	}
	e.Replicas = append(e.Replicas, slices.Sorted(slices.Values(h.Peers(e.Partition)))...)
	if p, ok := h.Place(e.Partition, r.query.Key); ok {
		e.Block = &BlockPlace{File: p.File, Page: p.Page, Pages: p.Pages, Offset: p.Offset, Length: p.Length, Compressed: p.Packed}
	}
}
