package blocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Verify reads the whole block from the file, not through the map, and checks everything that can
// be checked: the checksum of each page and chunk, the order of the keys, that every key is found
// by its fingerprint, the filter and the index, that the properties are true, and at last the hash of the file. Damage is
// ErrCorrupt, naming the first page that is bad.
func (r *Reader) Verify(ctx context.Context) error {
	if err := r.verify(ctx, spanReader{}); err != nil {
		return err
	}
	return r.CheckHash(ctx)
}

// Scrub is Verify without the hash of the file, for a block that is being served: wait is called before every read with its
// length in bytes, and may slow it down or end it; what was not in memory before is dropped from it
// again. What is in memory is checked there, and not read from the disk again.
func (r *Reader) Scrub(ctx context.Context, wait func(bytes int) error) error {
	return r.verify(ctx, spanReader{pace: wait, scrub: true})
}

func (r *Reader) verify(ctx context.Context, spans spanReader) error {
	v := verifier{r: r, it: r.Iter(nil, nil)}
	v.it.spans = spans
	v.hash.Reset()
	for i := range r.props.Pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.it.page, v.it.value = page{}, Value{}
		if v.it.next = i; !v.it.load() {
			return v.it.err
		}
		if err := v.page(i); err != nil {
			if errors.Is(err, ErrCorrupt) || v.diskError {
				return err
			}
			return r.corrupt(i, r.index.Location(i).Offset(), err)
		}
	}
	if err := v.sections(spans); err != nil {
		return err
	}
	return v.finish()
}

// sections reads what is behind the pages once more, as a reader that is in use has last done when it was opened.
func (v *verifier) sections(spans spanReader) error {
	for _, s := range v.r.footer.sections() {
		var now section
		err := spans.each(v.r, s.offset, s.offset+s.length, maxSpan, func(b []byte) error {
			now.update(b)
			return nil
		})
		if err == nil && now.crc != s.crc {
			err = v.r.corrupt(-1, s.offset, errChecksum)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type verifier struct {
	r         *Reader
	it        *Iterator
	scratch   Scratch     // for the filter
	builder   pageBuilder // of pages that are decoded
	hash      xxhash.Digest
	last      []byte
	records   int64
	rawBytes  int64
	maxValue  int64
	diskError bool
}

func (v *verifier) page(i int) error {
	if v.it.value.large != nil {
		return v.large(i)
	}
	p := v.it.page
	if p.symbols == nil {
		v.content(v.it.payload)
	} else if err := v.decodes(p); err != nil {
		return err
	}
	for n := range p.len() {
		key, value, err := p.record(n)
		if err != nil {
			return err
		}
		if p.symbols != nil {
			v.builder.add(key, value, uint64(p.payload[2+n])<<24)
		}
		hash := xxhash.Sum64(key)
		if p.payload[2+n] != fingerprint(hash) {
			return fmt.Errorf("record %d: wrong fingerprint", n)
		}
		if err := v.key(i, key, hash); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		v.value(int64(len(value)))
	}
	if p.symbols != nil {
		v.content(v.builder.take())
	}
	return nil
}

// decodes makes room for the records of an encoded page: the content hash is of the page that they were encoded from.
func (v *verifier) decodes(p page) error {
	if v.builder.buf == nil {
		v.builder = newPageBuilder(MaxBlockSize)
	}
	if 3*p.len() > v.builder.room {
		return errPage
	}
	return nil
}

func (v *verifier) large(i int) error {
	key := v.it.key
	v.content(v.it.payload[:2+4+len(key)+8+8]) // what follows depends on the codec
	if err := v.key(i, key, xxhash.Sum64(key)); err != nil {
		return err
	}
	var whole xxhash.Digest
	whole.Reset()
	v.it.value.large.spans = v.it.spans
	s := v.it.value.Section(0, v.it.value.Len())
	defer s.Close()
	n, err := io.Copy(&whole, s)
	if err != nil {
		v.diskError = true
		return err
	}
	if whole.Sum64() != v.it.value.Hash() {
		return errors.New("large value: wrong hash")
	}
	v.value(n)
	return nil
}

func (v *verifier) content(payload []byte) {
	v.hash.Write(binary.LittleEndian.AppendUint32(nil, crc32.Checksum(payload, castagnoli)))
}

// key checks one key against its predecessor, the index and the filter.
func (v *verifier) key(i int, key []byte, hash uint64) error {
	if v.records > 0 && bytes.Compare(v.last, key) >= 0 {
		return errors.New("keys out of order")
	}
	if known, err := v.r.known(hash, &v.scratch); err != nil {
		v.diskError = true
		return err
	} else if !known {
		return errors.New("the filter does not know the key")
	}
	rest, ok := v.r.index.CutPrefix(key)
	if page, _ := v.r.index.Page(v.r.index.Find(rest), hash); !ok || page != i {
		return errors.New("the index leads to another page")
	}
	if v.records == 0 && !bytes.Equal(key, v.r.props.FirstKey) {
		return errors.New("not the first key that the properties name")
	}
	v.last = append(v.last[:0], key...)
	v.records++
	v.rawBytes += int64(len(key))
	return nil
}

func (v *verifier) value(size int64) {
	v.rawBytes += size
	v.maxValue = max(v.maxValue, size)
}

// finish compares what was read with the properties.
func (v *verifier) finish() error {
	p := v.r.props
	var wrong error
	switch {
	case v.records != p.Records || v.rawBytes != p.RawBytes:
		wrong = fmt.Errorf("properties: %d records of %d bytes, found %d of %d", p.Records, p.RawBytes, v.records, v.rawBytes)
	case p.MaxValue != 0 && v.maxValue != p.MaxValue:
		wrong = fmt.Errorf("properties: largest value of %d bytes, found %d", p.MaxValue, v.maxValue)
	case !bytes.Equal(v.last, p.LastKey):
		wrong = errors.New("properties: wrong last key")
	case hex.EncodeToString(v.hash.Sum(nil)) != p.ContentHash:
		wrong = errors.New("properties: wrong content hash")
	default:
		return nil
	}
	return v.r.corrupt(-1, v.r.footer.properties.offset, wrong)
}
