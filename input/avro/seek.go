package avro

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// maxSearch bounds the search of From for a sync marker, in bytes. Writers use blocks of 64 KiB or a little more.
const maxSearch = 4 << 20

// From returns another Reader of the same file, for the records that follow the first sync marker of in, which
// gives the file from some offset behind the header on. Where there is no sync marker within 4 MiB, that Reader has
// no records.
//
// The bytes of a sync marker can stand in a record too, so ErrCorrupt of that Reader does not prove that the file
// is damaged, nor its absence that the records are right. Its offsets and numbers of records are not those of the
// file.
func (r *Reader) From(in io.Reader) (*Reader, error) {
	c, err := newCodec(r.file.codecName)
	if err != nil {
		return nil, r.corrupt(err)
	}
	other := &Reader{name: r.name, in: &counter{r: in}, root: r.root, noKey: r.noKey, keyPath: r.keyPath, valuePath: r.valuePath, record: -1}
	other.file = container{in: bufio.NewReaderSize(other.in, window), sync: r.file.sync, codec: c}
	if err := other.file.search(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	return other, nil
}

// search moves past the next sync marker, or to the end if there is none.
func (c *container) search() error {
	for passed := 0; passed < maxSearch; {
		peeked, err := c.in.Peek(c.in.Size())
		if err != nil && err != io.EOF {
			return err
		}
		if i := bytes.Index(peeked, c.sync[:]); i >= 0 {
			_, err = c.in.Discard(i + syncSize)
			return err
		}
		if err == io.EOF {
			break
		}
		n, err := c.in.Discard(len(peeked) - syncSize + 1)
		if err != nil {
			return err
		}
		passed += n
	}
	c.in.Reset(bytes.NewReader(nil))
	return nil
}
