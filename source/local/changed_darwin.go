package local

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns the time of the last change of a file's content, name or attributes, which no program can set.
func changed(info fs.FileInfo) time.Time {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(s.Ctimespec.Unix())
}
