package avro

import (
	"bufio"
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
	in   *bufio.Reader
	sync [syncSize]byte
	codec
	codecName string

	body    io.LimitedReader // the current block, compressed
	left    int64            // its records not read yet
	inBlock bool             // the current block is not finished
	data    stream           // the current block
}

// header reads the header up to the first block, and returns the schema.
func (c *container) header() (schema []byte, err error) {
	head := make([]byte, len(Magic))
	if _, err := io.ReadFull(c.in, head); err != nil {
		return nil, cut(err)
	}
	if string(head) != Magic {
		return nil, fmt.Errorf("not an Avro object container file: begins with %q, not %q", head, Magic)
	}
	meta, err := c.metadata()
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c.in, c.sync[:]); err != nil {
		return nil, cut(err)
	}
	if meta["avro.schema"] == nil {
		return nil, errors.New("no avro.schema in the metadata")
	}
	c.codecName = string(meta["avro.codec"])
	c.codec, err = newCodec(c.codecName)
	return meta["avro.schema"], err
}

// metadata reads byte by byte, so that it reads nothing beyond the metadata.
func (c *container) metadata() (map[string][]byte, error) {
	limited := &io.LimitedReader{R: c.in, N: maxHeader}
	s := stream{r: limited, buf: make([]byte, 1)}
	meta := map[string][]byte{}
	s.blocks(func() {
		key := string(s.append(nil, s.length()))
		value := s.append([]byte{}, s.length())
		if key == "avro.schema" || key == "avro.codec" {
			meta[key] = value
		}
	})
	if s.err != nil && limited.N == 0 {
		return nil, fmt.Errorf("the metadata has more than %d bytes", maxHeader)
	}
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
	if _, err := c.in.Peek(1); err != nil {
		return err
	}
	s := stream{r: c.in, buf: make([]byte, 1)}
	count, size := s.long(), s.long()
	if s.err != nil {
		return s.err
	}
	if count < 0 || size < 0 || size > MaxBlock {
		return fmt.Errorf("a block of %d records in %d bytes, of at most %d", count, size, MaxBlock)
	}
	c.body = io.LimitedReader{R: c.in, N: size}
	r, err := c.codec.open(&c.body, size)
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
	if _, err := io.Copy(io.Discard, &c.body); err != nil {
		return err
	}
	if c.body.N > 0 {
		return errShort
	}
	var sync [syncSize]byte
	if _, err := io.ReadFull(c.in, sync[:]); err != nil {
		return cut(err)
	}
	if !bytes.Equal(sync[:], c.sync[:]) {
		return errors.New("the sync marker after a block differs from the header's")
	}
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
