package blocks

import (
	"encoding/binary"
	"errors"
	"time"

	"sequins/blocks/internal/file"
)

// Known is what is known of a small block that has been open before, perhaps in another process. A file with this
// length and time of modification is taken for that block until it is opened.
type Known struct {
	Size    int64 // bytes
	ModTime int64 // µs since 1970
	Records int64
	Footer  uint32 // checksum in the footer, which depends on every byte of the block
}

// unopened is the state of a block that is known and has not been opened yet.
type unopened struct {
	known Known
	turn  chan struct{} // holds one element while a goroutine opens the block
}

// OpenKnown is [Open] for a block of which something is known. If the file has the length and the time of modification
// of k, nothing is read: the block is opened and checked at its first use, or by [Reader.EnsureOpen].
func OpenKnown(path string, k Known) (*Reader, error) {
	if !k.describes(path) {
		return Open(path)
	}
	r := &Reader{name: path, size: k.Size}
	r.unopened.Store(&unopened{k, make(chan struct{}, 1)})
	return r, nil
}

// describes reports whether the file at path looks like that of k.
func (k Known) describes(path string) bool {
	if k.Size <= 0 || k.Size > maxSmall {
		return false
	}
	size, modified, err := file.Stat(path)
	return err == nil && size == k.Size && modified == k.ModTime
}

// Known returns what [OpenKnown] has to know of the block; the zero value for one that is always opened at once.
func (r *Reader) Known() Known {
	if u := r.unopened.Load(); u != nil {
		return u.known
	}
	if r.file == nil || r.size > maxSmall {
		return Known{}
	}
	return Known{r.size, r.file.ModTime(), r.props.Records, r.checksum()}
}

// checksum is the one in the footer.
func (r *Reader) checksum() uint32 {
	return binary.LittleEndian.Uint32(r.file.Tail()[footerSize-len(magic)-4:])
}

// EnsureOpen opens the block if OpenKnown has not. Errors are those of Open, or ErrBusy.
func (r *Reader) EnsureOpen() error {
	u := r.unopened.Load()
	if u == nil {
		return nil
	}
	if !take(u.turn, time.After(readPatience)) {
		return ErrBusy
	}
	defer func() { <-u.turn }()
	if r.unopened.Load() == nil {
		return nil // another goroutine has opened it meanwhile
	}
	return r.openNow(u.known)
}

// openNow opens the block, which must be the one that is known. The file is opened by the first read, and so among the
// reads of the disk that are counted.
func (r *Reader) openNow(k Known) error {
	err := r.open(file.OpenLater(r.name, r.size, k.ModTime))
	if err == nil && (r.props.Records != k.Records || r.checksum() != k.Footer) {
		err = r.corrupt(-1, r.size-footerSize, errors.New("the footer has changed since the block was last open"))
	}
	if err != nil {
		return errors.Join(err, r.file.Close())
	}
	r.unopened.Store(nil)
	return nil
}
