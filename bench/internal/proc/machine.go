package proc

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine describes what the benchmark runs on, in one line of text, with how busy it is.
func Machine() string {
	var u unix.Utsname
	var si unix.Sysinfo_t
	_, _ = unix.Uname(&u), unix.Sysinfo(&si) // neither fails
	load, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%s, %d cores, %d GiB, Linux %s, %s, load average %s", cpuModel(), online(),
		(si.Totalram*uint64(si.Unit)+1<<29)>>30, string(bytes.TrimRight(u.Release[:], "\x00")), runtime.Version(), average)
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
