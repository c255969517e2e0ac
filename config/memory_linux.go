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

// noLimit is the limit where there is none.
const noLimit Size = math.MaxInt64

// cgroupMemory returns the smallest memory limit of the control groups of this process, of version 1 and 2, and of the
// groups that contain them as far as they are visible: those of a container, its pod, or a unit of systemd. root is the
// root of the file system.
func cgroupMemory(root string) Size {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return noLimit
	}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return noLimit
	}
	limit := noLimit
	for line := range strings.Lines(string(mounts)) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		// The group of the process, relative to the mount. One above the root of the mount is not visible.
		group, below := strings.CutPrefix(path.Clean("/"+memoryGroup(string(groups), m.v2)), strings.TrimSuffix(m.root, "/"))
		if !below || group != "" && group[0] != '/' {
			group = "/"
		}
		for ; ; group = path.Dir(group) {
			limit = min(limit, readLimit(filepath.Join(root, m.dir, group, m.file())))
			if group == "/" || group == "" {
				break
			}
		}
	}
	return limit
}

// cgroupMount is a mounted hierarchy of control groups that can limit memory.
type cgroupMount struct {
	root, dir string // the group that is mounted, and where
	v2        bool
}

func (m cgroupMount) file() string {
	if m.v2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

// parseMount parses a line of mountinfo (proc_pid_mountinfo(5)). It returns false for other mounts.
func parseMount(line string) (cgroupMount, bool) {
	mount, options, ok := strings.Cut(strings.TrimSpace(line), " - ")
	f, o := strings.Fields(mount), strings.Fields(options)
	if !ok || len(f) < 5 || len(o) < 3 {
		return cgroupMount{}, false
	}
	m := cgroupMount{root: unescapeMount.Replace(f[3]), dir: unescapeMount.Replace(f[4]), v2: o[0] == "cgroup2"}
	return m, m.v2 || o[0] == "cgroup" && hasWord(o[2], "memory")
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// memoryGroup returns the group of the process in /proc/self/cgroup (cgroups(7)): lines of an id, the controllers of
// version 1 or nothing, and the group.
func memoryGroup(groups string, v2 bool) string {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && (v2 && f[0] == "0" && f[1] == "" || !v2 && hasWord(f[1], "memory")) {
			return f[2]
		}
	}
	return "/"
}

func hasWord(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

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
