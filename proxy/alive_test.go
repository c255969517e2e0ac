//go:build linux

package proxy

import (
	"net"
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sequins/test/expect"
)

// A signal that arrives during the check, as the runtime's scheduler sends them, is no input.
func TestSilentDespiteSignals(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	expect.NoError(t, err)
	defer nc.Close()
	var s socket
	s.init(nc)

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	interruptThread(t, 20*time.Microsecond)
	heard := 0
	for range 100_000 {
		if !s.silent() {
			heard++
		}
	}
	if heard > 0 {
		t.Errorf("%d of 100000 checks found input where there is none", heard)
	}
}

// interruptThread sends the calling thread signals until the test ends.
func interruptThread(t *testing.T, period time.Duration) {
	t.Helper()
	const notifyThread = 4 // SIGEV_THREAD_ID
	event := struct {
		value         uintptr
		signo, notify int32
		thread        int32
		_             [44]byte
	}{signo: int32(unix.SIGUSR1), notify: notifyThread, thread: int32(unix.Gettid())}
	arrived := make(chan os.Signal, 1) // or it would end the process
	signal.Notify(arrived, unix.SIGUSR1)
	t.Cleanup(func() { signal.Stop(arrived) })
	var timer int32
	if _, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer))); errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { unix.Syscall(unix.SYS_TIMER_DELETE, uintptr(timer), 0, 0) })
	every := unix.NsecToTimespec(int64(period))
	spec := struct{ interval, value unix.Timespec }{every, every}
	if _, _, errno := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}
