package proc

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stolen is how much of the processors' time a virtual machine's host has had for others, and of how much, since
// the machine began, in ticks: from the line "cpu" of /proc/stat, see proc(5).
func stolen() (steal, all float64) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, field := range strings.Fields(line) {
		ticks, _ := strconv.ParseFloat(field, 64)
		if i <= 8 { // what follows is in those before
			all += ticks
		}
		if i == 8 {
			steal = ticks
		}
	}
	return steal, all
}

var stealBefore, allBefore = stolen()

// Machine describes the machine of the benchmark in one line, with the load of the machine and of its host.
func Machine() string {
	var u unix.Utsname
	var si unix.Sysinfo_t
	_, _ = unix.Uname(&u), unix.Sysinfo(&si) // neither fails
	load, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(load), " ")
	steal, all := stolen()
	return fmt.Sprintf("%s, %d cores, %d GiB, Linux %s, %s, load average %s, %.1f %% stolen by the host meanwhile", cpuModel(), online(),
		(si.Totalram*uint64(si.Unit)+1<<29)>>30, string(bytes.TrimRight(u.Release[:], "\x00")), runtime.Version(), average,
		100*(steal-stealBefore)/max(1, all-allBefore))
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// online counts the processors of the machine, not of this process.
func online() int {
	b, _ := os.ReadFile("/proc/cpuinfo")
	return bytes.Count(b, []byte("processor\t"))
}
