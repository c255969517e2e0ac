//go:build !linux

package config

// machineMemory returns 0: unknown.
func machineMemory() Size { return 0 }
