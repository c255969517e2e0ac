package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"sequins/internal/lookahead"
	"sequins/internal/unpack"
)

// An object container file is
//
//	"Obj" 1      4 bytes
//	metadata     a map of bytes, with avro.schema and avro.codec in it
//	sync         16 bytes, random for each file
//	blocks       each: long count of records, long size, size bytes of records, compressed, and sync again
const (
	Magic    = "Obj\x01" // at the start of a file
	syncSize = 16

	// maxHeader bounds the header, in bytes.
	maxHeader = 4 << 20
	// firstHeader is the number of bytes read first for a header.
	firstHeader = 4 << 10
)

// container reads the framing of a file.
type container struct {
	in   lookahead.Reader
	sync [syncSize]byte

	codec unpack.Decoder // nil if blocks are not compressed

	left    int64  // records of the current block not read yet
	inBlock bool   // the current block is not finished
	data    stream // the current block, decompressed
	plain   []byte // memory for it
}

// header reads the header up to the first block, and returns the schema.
func (c *container) header() (schema []byte, err error) {
	for n := firstHeader; ; n *= 2 {
		whole := c.in.Fill(n)
		s := stream{b: c.in.Bytes()}
		schema, err = c.parseHeader(&s)
		switch {
		case err != errShort || !whole:
			c.in.Skip(s.pos)
			return schema, err
		case n >= maxHeader:
			return nil, fmt.Errorf("the header has more than %d bytes", maxHeader)
		}
	}
}

func (c *container) parseHeader(s *stream) (schema []byte, err error) {
	head := s.take(int64(len(Magic)))
	if s.err == nil && string(head) != Magic {
		return nil, fmt.Errorf("not an Avro object container file: begins with %q, not %q", head, Magic)
	}
	meta := map[string][]byte{}
	s.blocks(func() {
		key, value := string(s.take(s.length())), s.take(s.length())
		if key == "avro.schema" || key == "avro.codec" {
			meta[key] = bytes.Clone(value)
		}
	})
	copy(c.sync[:], s.take(syncSize))
	switch {
	case s.err != nil:
		return nil, s.err
	case meta["avro.schema"] == nil:
		return nil, errors.New("no avro.schema in the metadata")
	}
	c.codec, err = newCodec(string(meta["avro.codec"]))
	return meta["avro.schema"], err
}

// next moves to the next record, and at the end of a block to the next block. It returns io.EOF at the end of the file.
func (c *container) next() error {
	for c.left == 0 {
		if c.inBlock {
			if err := c.finishBlock(); err != nil {
				return err
			}
		}
		if err := c.startBlock(); err != nil {
			return err
		}
	}
	c.left--
	return nil
}

func (c *container) startBlock() error {
	if !c.in.Fill(1) {
		return c.in.Err()
	}
	c.in.Fill(2 * binary.MaxVarintLen64) // or less, near the end
	head := stream{b: c.in.Bytes()}
	count, size := head.long(), head.long()
	if head.err != nil {
		return head.err
	}
	c.in.Skip(head.pos)
	if count < 0 || size < 0 || size > MaxBlock {
		return fmt.Errorf("a block of %d records in %d bytes, of at most %d", count, size, MaxBlock)
	}
	if !c.in.Fill(int(size)) {
		return errShort
	}
	block := c.in.Bytes()[:size] // valid until the file is read again, behind its last record
	c.in.Skip(len(block))
	if c.codec != nil {
		var err error
		if c.plain, err = c.codec(c.plain[:0], block, MaxBlock); err != nil {
			return err
		}
		block = c.plain
	}
	c.data = stream{b: block}
	c.left, c.inBlock = count, true
	return nil
}

// finishBlock checks that the current block contains only its records.
func (c *container) finishBlock() error {
	if c.data.pos < len(c.data.b) {
		return errors.New("a block has bytes after its last record")
	}
	if !c.in.Fill(syncSize) {
		return errShort
	}
	if !bytes.HasPrefix(c.in.Bytes(), c.sync[:]) {
		return errors.New("the sync marker after a block differs from the header's")
	}
	c.in.Skip(syncSize)
	c.inBlock = false
	return nil
}
