//go:build !linux

package background

// LowerPriority does nothing where a thread has no priority of its own.
func LowerPriority() {}
