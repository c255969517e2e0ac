//go:build !linux

package file

// Only Linux tells cheaply which pages of a map are in memory, so elsewhere nothing is mapped and every page is
// read.

func maxMaps() int { return 0 }

func mapFile(int, int64) []byte { return nil }

func randomAccess(int) {}

// ReadCached reports that nothing was read.
func (*File) ReadCached([]byte, int64) bool { return false }

// Prefetch does nothing.
func (*File) Prefetch(int64, int64) {}

// Resident returns true: nothing has to be dropped from memory.
func (*File) Resident(int64, int64) (bool, error) { return true, nil }

// Forget does nothing.
func (*File) Forget(int64, int64) error { return nil }

// Residency is not known.
type Residency struct{}

// Start returns 0.
func (*Residency) Start() int64 { return 0 }

// Covers returns false.
func (*Residency) Covers([]byte, int64, int64) (bool, error) { return false, nil }

func unmap([]byte) error { return nil }
