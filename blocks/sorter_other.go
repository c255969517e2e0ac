//go:build !linux

package blocks

import "sequins/internal/fsys"

func mapArena(size int) ([]byte, error) { return make([]byte, size), nil }

func unmapArena([]byte) error { return nil }

// cacheWindow gives advice where there is somebody to take it.
type cacheWindow struct{}

func newCacheWindow(fsys.File) cacheWindow { return cacheWindow{} }
func (c *cacheWindow) used(int64)          {}
func (c *cacheWindow) written(int64)       {}
func (c *cacheWindow) finished(int64)      {}
