package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const pinned = "SEQUINS_BENCH_PINNED"

// Pin binds this process to one processor, all of its threads: it begins the program anew, so that the
// runtime finds one processor and uses one P.
func Pin(cpu int) error {
	if os.Getenv(pinned) == strconv.Itoa(cpu) {
		return nil
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("binding to processor %d: %w", cpu, err)
	}
	return syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), fmt.Sprintf("%s=%d", pinned, cpu)))
}

// OnCPUs returns the command bound to a list of processors, as taskset takes it; "" binds it to none.
func OnCPUs(cpus string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	if cpus != "" {
		cmd = exec.Command("taskset", append([]string{"-c", cpus, name}, args...)...)
	}
	cmd.Stderr = os.Stderr
	cmd.Env = withoutPin(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nothing outlives the benchmark
	return cmd
}

func withoutPin(env []string) []string {
	var rest []string
	for _, e := range env {
		if !strings.HasPrefix(e, pinned+"=") {
			rest = append(rest, e)
		}
	}
	return rest
}
