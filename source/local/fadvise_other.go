//go:build !linux

package local

import "os"

func adviseSequential(*os.File) {}

func adviseDontNeed(*os.File, int64, int64) {}
