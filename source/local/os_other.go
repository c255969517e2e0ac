//go:build !linux

package local

import (
	"io/fs"
	"os"
	"time"
)

func adviseSequential(*os.File) {}

func hasChangeTimes(string) bool { return false }

func changed(fs.FileInfo) time.Time { return time.Time{} }
