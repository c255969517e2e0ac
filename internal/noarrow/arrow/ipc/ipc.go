// Package ipc declares a reader that is always an error.
package ipc

import (
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Reader reads nothing.
type Reader struct{}

// Option is ignored.
type Option struct{}

// WithAllocator is ignored.
func WithAllocator(memory.Allocator) Option { return Option{} }

// NewReader returns an error.
func NewReader(io.Reader, ...Option) (*Reader, error) {
	return nil, errors.New("sequins is compiled without Arrow")
}

func (*Reader) Release() {}

func (*Reader) Schema() *arrow.Schema { return nil }

func (*Reader) Next() bool { return false }

func (*Reader) RecordBatch() arrow.RecordBatch { return nil }

func (*Reader) Err() error { return nil }
