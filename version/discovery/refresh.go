package discovery

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"time"

	"sequins/internal/sleep"
	"sequins/source"
)

// RefreshFile is a file in the directory of the source. When its content changes, every node looks at the source.
const RefreshFile = "_REFRESH"

const (
	// refreshPoll is the interval at which the file is read.
	refreshPoll = 3 * time.Second
	// maxRefresh limits the file, in bytes.
	maxRefresh = 64 << 10
	// refreshTimeout limits one reading.
	refreshTimeout = 15 * time.Second
)

// FollowRefresh calls changed whenever the content of RefreshFile has changed, until ctx ends. What the file has at the
// first reading is no change, and a file that cannot be read is not either: the listings of the source report that.
func FollowRefresh(ctx context.Context, src source.Source, changed func()) {
	var last []byte
	for known := false; ; {
		if now, err := readRefresh(ctx, src); err == nil {
			if known && !bytes.Equal(now, last) {
				changed()
			}
			last, known = now, true
		}
		if sleep.For(ctx, refreshPoll) != nil {
			return
		}
	}
}

// readRefresh returns the content of the file; nothing if there is none.
func readRefresh(ctx context.Context, src source.Source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	data, err := source.ReadSmall(ctx, src, "", RefreshFile, maxRefresh)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
