package config

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// machineMemory returns the memory limit of the process: that of the machine or of its container,
// rounded down to MiB; 0 if unknown.
func machineMemory() Size {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	memory := Size(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // the types differ between architectures
	limit, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return memory &^ (1<<20 - 1)
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil { // it is "max" if there is no limit
		memory = min(memory, Size(n))
	}
	return memory &^ (1<<20 - 1)
}
