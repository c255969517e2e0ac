package avro

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

	// maxHeader bounds the metadata, in bytes.
	maxHeader = 4 << 20
)

// container reads the framing of a file.
type container struct {
	file stream
	sync [syncSize]byte

	codec     codec
	codecName string

	left    int64  // records of the current block not read yet
	inBlock bool   // the current block is not finished
	data    stream // the current block, decompressed
}

// header reads the header up to the first block, and returns the schema.
func (c *container) header() (schema []byte, err error) {
	head := c.file.append(nil, int64(len(Magic)))
	if c.file.err != nil {
		return nil, c.file.err
	}
	if string(head) != Magic {
		return nil, fmt.Errorf("not an Avro object container file: begins with %q, not %q", head, Magic)
	}
	meta, err := c.metadata()
	if err != nil {
		return nil, err
	}
	copy(c.sync[:], c.file.append(nil, syncSize))
	if c.file.err != nil {
		return nil, c.file.err
	}
	if meta["avro.schema"] == nil {
		return nil, errors.New("no avro.schema in the metadata")
	}
	c.codecName = string(meta["avro.codec"])
	c.codec, err = newCodec(c.codecName)
	return meta["avro.schema"], err
}

func (c *container) metadata() (map[string][]byte, error) {
	s := &c.file
	text := func() []byte {
		n := s.length()
		if n > maxHeader-s.consumed() {
			s.fail(fmt.Errorf("the metadata has more than %d bytes", maxHeader))
			return nil
		}
		return s.append([]byte{}, n)
	}
	meta := map[string][]byte{}
	s.blocks(func() {
		key, value := string(text()), text()
		if key == "avro.schema" || key == "avro.codec" {
			meta[key] = value
		}
	})
	return meta, s.err
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
	if !c.file.in.Fill(1) {
		return c.file.in.Err()
	}
	count, size := c.file.long(), c.file.long()
	if c.file.err != nil {
		return c.file.err
	}
	if count < 0 || size < 0 || size > MaxBlock {
		return fmt.Errorf("a block of %d records in %d bytes, of at most %d", count, size, MaxBlock)
	}
	if !c.file.in.Fill(int(size)) {
		return errShort
	}
	block := c.file.in.Bytes()[:size] // valid until the file is read again, behind its last record
	c.file.in.Skip(len(block))
	r, err := c.codec(block)
	if err != nil {
		return cut(err)
	}
	c.data.reset(r)
	c.left, c.inBlock = count, true
	return nil
}

// finishBlock checks that the current block contains only its records.
func (c *container) finishBlock() error {
	if !c.data.ended() {
		if c.data.err != nil {
			return cut(c.data.err)
		}
		return errors.New("a block has bytes after its last record")
	}
	if !c.file.in.Fill(syncSize) {
		return errShort
	}
	if !bytes.HasPrefix(c.file.in.Bytes(), c.sync[:]) {
		return errors.New("the sync marker after a block differs from the header's")
	}
	c.file.in.Skip(syncSize)
	c.inBlock = false
	return nil
}

// cut converts an io.EOF within a block into an error.
func cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errShort
	}
	return err
}
