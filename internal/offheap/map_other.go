//go:build !linux

package offheap

// Map returns n bytes of zeros, on the heap.
func Map(n int) ([]byte, error) { return make([]byte, n), nil }

// Unmap does nothing.
func Unmap([]byte) error { return nil }
