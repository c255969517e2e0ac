//go:build !linux

package load

// lowerPriority does nothing where a thread has no priority of its own.
func lowerPriority() {}
