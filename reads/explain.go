package reads

import (
	"cmp"
	"encoding/base64"
	"slices"
	"time"
	"unicode/utf8"
)

// An Explanation describes step by step how a key was looked up. It contains only the size and hash of the
// value.
type Explanation struct {
	DB string `json:"db"`
	// Key is the key if it is valid UTF-8; otherwise KeyBase64 is.
	Key       string `json:"key,omitempty"`
	KeyBase64 string `json:"key_base64,omitempty"`
	Version   string `json:"version"`
	// Hash is the key's hash by Partitioner. Partition is its remainder modulo Partitions.
	Partitioner string `json:"partitioner"`
	Hash        int32  `json:"hash"`
	Partition   int    `json:"partition"`
	Partitions  int    `json:"partitions"`
	// Replicas are the known nodes that hold the partition: this node first, if it does, and the others
	// sorted.
	Replicas []string `json:"replicas"`

	// Found reports whether the key is in the version. Status is the status that a GET would have, and Error
	// the reason if it is not 200. The front end sets both.
	Found  bool   `json:"found"`
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
	// AnsweredBy is "local", the address of the peer, or "" if there was no answer.
	AnsweredBy string `json:"answered_by"`
	// Size is the size of the value in bytes; ETag is a hash of it.
	Size int64  `json:"size,omitempty"`
	ETag string `json:"etag,omitempty"`

	Microseconds Steps `json:"microseconds"`
}

// Steps are the durations of the steps of a lookup, in microseconds.
type Steps struct {
	Lookup float64 `json:"lookup"` // parsing the request, acquiring the version, and searching the local block if there is one
	Peers  float64 `json:"peers"`  // requests to other nodes; 0 if there were none
	Total  float64 `json:"total"`
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }

// Explain returns how Do looked the key up, which must have been Timed. The result is nil if no
// version was acquired.
func (r *Read) Explain(outcome Outcome) *Explanation {
	if r.handle == nil {
		return nil
	}
	h, key := r.handle, r.query.Key
	e := &Explanation{DB: r.db.name, Version: h.Name, Partitioner: h.Partitioner.String(), Partitions: h.Partitions, Replicas: []string{}}
	if utf8.Valid(key) {
		e.Key = string(key)
	} else {
		e.KeyBase64 = base64.StdEncoding.EncodeToString(key)
	}
	if e.Partitions == 0 {
		return e
	}
	e.Hash, e.Partition = h.Partitioner.Hash(key), r.partition
	e.Microseconds = Steps{micros(r.Lookup), micros(r.Asking), micros(time.Since(r.start))}
	if outcome == Found || outcome == Absent {
		e.AnsweredBy = cmp.Or(r.Peer, "local")
	}
	if outcome == Found {
		e.Found, e.Size, e.ETag = true, max(0, r.Length), string(r.ETag)
	}
	if r.local {
		e.Replicas = append(e.Replicas, r.reader.opts.Name)
	}
	e.Replicas = append(e.Replicas, slices.Sorted(slices.Values(h.Following.Peers(e.Partition)))...)
	return e
}
