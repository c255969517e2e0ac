// Package memory declares an allocator that nothing uses.
package memory

// Allocator allocates nothing.
type Allocator struct{}

// DefaultAllocator is the only Allocator.
var DefaultAllocator Allocator
