package config

import (
	"math"
	"os"
	"path"
	"path/filepath"
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
	return min(memory, cgroupMemory("/")) &^ (1<<20 - 1)
}

const noLimit Size = math.MaxInt64

// cgroupMemory returns the smallest memory limit of the control groups of this process, of version 1 and 2, and of the
// groups that contain them as far as they are visible: those of a container, its pod, or a unit of systemd. A container
// often sees its own group as the root, whatever its name. root is the root of the file system.
func cgroupMemory(root string) Size {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return noLimit
	}
	limit := noLimit
	for line := range strings.Lines(string(groups)) { // an id, the controllers of version 1 or nothing, and the group: cgroups(7)
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		dir, file := "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		switch {
		case len(f) < 3:
			continue
		case f[1] == "":
			dir, file = "sys/fs/cgroup", "memory.max"
		case !strings.Contains(","+f[1]+",", ",memory,"):
			continue
		}
		for group := path.Clean("/" + f[2]); ; group = path.Dir(group) {
			limit = min(limit, readLimit(filepath.Join(root, dir, group, file)))
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// readLimit reads the limit of a group. A group of version 2 without one says "max", one of version 1 a number close to
// the greatest.
func readLimit(file string) Size {
	text, err := os.ReadFile(file)
	if err != nil {
		return noLimit
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 {
		return noLimit
	}
	return Size(n)
}
