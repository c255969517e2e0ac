//go:build !linux

package extsort

import "sequins/internal/fsys"

// cacheWindow gives advice where there is somebody to take it.
type cacheWindow struct{}

func newCacheWindow(fsys.File) cacheWindow { return cacheWindow{} }
func (c *cacheWindow) used(int64)          {}
func (c *cacheWindow) written(int64)       {}
func (c *cacheWindow) finished(int64)      {}
