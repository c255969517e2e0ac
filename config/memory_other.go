//go:build !linux

package config

// machineMemory returns 0: it is not known.
func machineMemory() Size { return 0 }
