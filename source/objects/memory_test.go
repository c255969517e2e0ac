package objects

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/source"
)

// inMemory is a store of objects that do not change. The stores of other packages are tested with real servers.
type inMemory map[string][]byte

var written = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func (m inMemory) URL(key string) string { return "memory://bucket/" + key }

func (m inMemory) List(_ context.Context, prefix string, deep bool, _ string) (p Page, err error) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if dir, _, nested := strings.Cut(rest, "/"); ok && nested && !deep {
			p.Dirs = append(p.Dirs, prefix+dir+"/")
		} else if ok {
			p.Objects = append(p.Objects, Object{Key: key, Size: int64(len(m[key])), Modified: written, ID: fmt.Sprint(len(m[key]))})
		}
	}
	return p, nil
}

func (m inMemory) Get(_ context.Context, key, id string, offset, n int64) (*Body, error) {
	data, ok := m[key]
	size := int64(len(data))
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case id != "" && id != fmt.Sprint(size):
		return nil, source.ErrChanged
	case n < 0:
		n = size
	case offset >= size:
		return nil, ErrRange
	}
	body := bytes.NewReader(data[offset:min(offset+n, size)])
	return &Body{ReadCloser: io.NopCloser(body), Offset: offset, Size: size, ID: fmt.Sprint(size), Modified: written}, nil
}

func (m inMemory) Put(context.Context, string, []byte) error { return fs.ErrPermission }
