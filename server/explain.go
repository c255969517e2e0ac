package server

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"sequins/proxy"
	"sequins/version"
)

// An Explanation is the answer to GET /<db>/<key>?explain: how the key is looked
// up, step by step. It never holds anything of the value but its size and hash.
type Explanation struct {
	DB string `json:"db"`
	// Key is the key if it is UTF-8; if not it is in KeyBase64.
	Key       string `json:"key,omitempty"`
	KeyBase64 string `json:"key_base64,omitempty"`
	Version   string `json:"version"`
	// Hash is what Partitioner makes of the key, before it is divided by
	// Partitions: the remainder is the Partition.
	Partitioner string `json:"partitioner"`
	Hash        int32  `json:"hash"`
	Partition   int    `json:"partition"`
	Partitions  int    `json:"partitions"`
	// Replicas are the nodes that hold the partition, as far as this one knows:
	// itself if it does, and the others in no order.
	Replicas []string `json:"replicas"`

	// Found: the key is in the version. Status is what a GET is answered with
	// now, and Error, where it is not 200, why.
	Found  bool   `json:"found"`
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
	// AnsweredBy is "local", or the address of the peer; "" if nobody has.
	AnsweredBy string `json:"answered_by"`
	// Block is where the key lies, or would lie, in the block of this node; nil
	// where it has none, or where that cannot hold the key.
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

// Steps are what each step of a lookup has taken, in microseconds.
type Steps struct {
	Version   float64 `json:"version"`   // reading the request, finding the version
	Partition float64 `json:"partition"` // hashing the key
	Block     float64 `json:"block"`     // looking into the block here, or seeing that there is none
	Peers     float64 `json:"peers"`     // asking other nodes; 0 where none was
	Total     float64 `json:"total"`
}

// explains says whether a query asks for an explanation: "explain" is one of its
// parameters, whatever its value.
func explains(query []byte) bool {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if name, _, _ := bytes.Cut(pair, []byte{'='}); string(name) == "explain" {
			return true
		}
	}
	return false
}

// explain answers with how the key is looked up in the version that r holds. It
// is counted with the status pages: it says nothing about how fast keys are.
func (r *request) explain(proxied bool) {
	r.counts = r.s.opts.Metrics.Status
	e := &Explanation{
		DB: r.db.name, Version: r.handle.Version(), Partitioner: r.handle.Partitioner().String(),
		Partitions: r.handle.Partitions(), Replicas: []string{}, Status: http.StatusNotFound,
	}
	if utf8.Valid(r.target.key) {
		e.Key = string(r.target.key)
	} else {
		e.KeyBase64 = base64.StdEncoding.EncodeToString(r.target.key)
	}
	step := r.start
	lap := func(d *float64) {
		now := time.Now()
		*d, step = micros(now.Sub(step)), now
	}
	lap(&e.Microseconds.Version)
	if e.Partitions > 0 {
		e.Hash = r.handle.Partitioner().Hash(r.target.key)
		e.Partition = r.handle.Partition(r.target.key)
		lap(&e.Microseconds.Partition)
		err := r.explainBlock(e)
		lap(&e.Microseconds.Block)
		if err != nil {
			r.explainElsewhere(e, proxied, err)
			if e.AnsweredBy != "" {
				lap(&e.Microseconds.Peers)
			}
		}
		e.Microseconds.Total = micros(time.Since(r.start))
		r.explainPlace(e, err)
	}
	if e.Status == http.StatusNotFound {
		e.Error = noSuchKey
	}
	r.adapt(func(w http.ResponseWriter, _ *http.Request) { r.s.json(w, http.StatusOK, e) })
	r.code, r.bytes = http.StatusOK, int64(len(r.ctx.Response.Body()))
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }

// explainBlock looks the key up here. The error is that of Handle.Get.
func (r *request) explainBlock(e *Explanation) error {
	v, found, err := r.handle.Get(e.Partition, r.target.key, &r.scratch)
	if err != nil {
		return err
	}
	e.AnsweredBy, e.Found = "local", found
	if found {
		e.Status, e.Size, e.ETag = http.StatusOK, v.Len(), string(r.tag(v.Hash()))
	}
	return nil
}

// explainElsewhere asks peers, as a GET would, but for the head alone.
func (r *request) explainElsewhere(e *Explanation, proxied bool, err error) {
	unreadable := !errors.Is(err, version.ErrNotLocal)
	if unreadable {
		r.broken(e.Partition, err)
	}
	if peers := r.peers(e.Partition, proxied); len(peers) > 0 {
		r.query = proxy.Query{Peers: peers, Head: true, Path: r.target.path, Version: e.Version, Fields: r.fields(forwarded), Trace: r.trace}
		var a *proxy.Answer
		if a, err = r.s.opts.Proxy.Fetch(r.s.ending, &r.query); err == nil {
			e.AnsweredBy, e.Status, e.Found = a.Peer, a.Status, a.Status == http.StatusOK
			if e.Found {
				e.Size, e.ETag = max(0, a.Length), string(a.Header.ETag)
			}
			a.Body.Close() //nolint:errcheck // nothing is read of it
			return
		}
	}
	e.Status, e.Error = unanswered(unreadable || r.alone(proxied), proxied, err)
}

// explainPlace adds who holds the partition, and where it lies here. here is how
// the look into the block has ended.
func (r *request) explainPlace(e *Explanation, here error) {
	if !errors.Is(here, version.ErrNotLocal) {
		e.Replicas = append(e.Replicas, r.s.catalog.Status().Node)
	}
	e.Replicas = append(e.Replicas, slices.Sorted(slices.Values(r.handle.Peers(e.Partition)))...)
	if p, ok := r.handle.Place(e.Partition, r.target.key); ok {
		e.Block = &BlockPlace{File: p.File, Page: p.Page, Pages: p.Pages, Offset: p.Offset, Length: p.Length, Compressed: p.Packed}
	}
}
