package proxy

import "golang.org/x/sys/unix"

// silent says of an idle connection that nothing has come on it, not even its
// end. What does was not asked for, and would be taken for the next answer.
func (c *conn) silent() bool {
	if c.raw == nil {
		return true
	}
	var err error
	if c.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	}) != nil {
		return false
	}
	return err == unix.EAGAIN || err == unix.EINTR
}
