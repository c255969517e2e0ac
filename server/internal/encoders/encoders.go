// Package encoders compresses answers. Encoders hold memory while a slow client receives its answer, so their number is bounded.
package encoders

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Max is the number of encoders in use at a time. Each holds about 0.8 MiB.
const Max = 128

// window is the window of zstd. Larger windows compress large values little better and take as much more memory.
const window = 128 << 10

// Codings are the content codings that there are.
var Codings = []string{"zstd", "gzip"}

// An Encoder writes what is written to it in a content coding.
type Encoder interface {
	io.WriteCloser
	// Flush writes all that is needed to decode what has been written.
	Flush() error
	Reset(w io.Writer)
}

// Pool holds encoders for reuse. The zero value is ready to use, also concurrently.
type Pool struct {
	gzip, zstd sync.Pool
	used       atomic.Int64
}

// Get returns an encoder for one of Codings, which writes to w. It returns nil if Max are in use. Put must be called.
func (p *Pool) Get(coding string, w io.Writer) Encoder {
	if p.used.Add(1) > Max {
		p.used.Add(-1)
		return nil
	}
	e, ok := p.of(coding).Get().(Encoder)
	switch {
	case ok:
	case coding == "zstd":
		e = newZstd()
	default:
		e = newGzip()
	}
	e.Reset(w)
	return e
}

// Put returns an encoder, which need not be closed.
func (p *Pool) Put(coding string, e Encoder) {
	e.Reset(nil)
	p.of(coding).Put(e)
	p.used.Add(-1)
}

func (p *Pool) of(coding string) *sync.Pool {
	if coding == "zstd" {
		return &p.zstd
	}
	return &p.gzip
}

func newGzip() Encoder {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}

func newZstd() Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are valid
	}
	return w
}
