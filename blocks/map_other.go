//go:build !linux

package blocks

import "os"

// mappedFile is an open file. Only Linux tells cheaply which pages of a map are in memory, so
// elsewhere nothing is mapped and every page is read.
type mappedFile struct {
	*os.File
	size int64
	data []byte // always nil
}

func openMapped(path string) (*mappedFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &mappedFile{File: f, size: st.Size()}, nil
}

type residency struct{ start int64 }

func (*residency) covers([]byte, int64, int64) (bool, error) { return false, nil }

func (*mappedFile) resident(int64, int64) (bool, error) { return true, nil }

func (*mappedFile) drop(int64, int64) error { return nil }

func mapHuge(int) []byte { return nil }

func unmap([]byte) error { return nil }
