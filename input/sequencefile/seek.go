package sequencefile

import (
	"bytes"
	"io"
	"slices"
)

// maxSearch bounds the search of NewReaderAt for a sync marker, in bytes. Hadoop writes one every 2,000 bytes or 100
// KiB, and one per block of about 1 MB before compression.
const maxSearch = 4 << 20

// NewReaderAt returns a Reader for the records that follow the first sync marker at or after an offset, to the end of
// the file. r gives the file from that offset on, and h is the file's header, as Header returns it. Where there is no
// sync marker within 4 MiB, the Reader has no records.
//
// The bytes of a sync marker can stand in a key or value too. Then what is read is not what was written, so an
// ErrCorrupt of this Reader does not prove that the file is damaged, nor its absence that the records are right.
// An error of r is returned wrapped, as by Err.
func NewReaderAt(r io.Reader, h Header, offset int64, name string) (*Reader, error) {
	sr := &Reader{in: input{r: r, base: offset}, name: name, header: h}
	sr.prepare()
	found, err := sr.search()
	if err != nil {
		return nil, err
	}
	if !found {
		sr.err = io.EOF
	}
	return sr, nil
}

// search moves to the escape before the next sync marker, and reports whether there is one.
func (r *Reader) search() (bool, error) {
	marker := slices.Concat([]byte{0xff, 0xff, 0xff, 0xff}, r.header.Sync[:])
	in := &r.in
	for start := in.offset(); in.offset()-start < maxSearch; {
		if !in.fill(len(marker)) {
			if in.err != io.EOF {
				return false, r.ended(in.offset(), "")
			}
			return false, nil
		}
		if i := bytes.Index(in.buf[in.pos:in.end], marker); i >= 0 {
			in.pos += i
			return true, nil
		}
		in.pos = in.end - len(marker) + 1
	}
	return false, nil
}
