package hdfs

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/source"
)

var _ source.Checksummer = (*Source)(nil)

// Checksum returns the MD5 of the MD5s of the CRCs that datanodes keep of a file. It is "" if a datanode does not answer with one: for
// files in encryption zones, erasure-coded files, and connections with SASL. Each CRC is of 512 bytes, so that a change within 512 bytes
// is missed once in 2^32 times, and one of several such chunks never in practice.
func (s *Source) Checksum(ctx context.Context, db, version string, file source.File) (string, error) {
	p, err := source.FilePath(db, version, file.Name, source.ReadOptions{})
	p = path.Join(s.root, p)
	if err != nil {
		return "", &fs.PathError{Op: "checksum", Path: s.display(p), Err: err}
	}
	if file.Size == 0 {
		return "empty", nil
	}
	sum, err := s.checksum(ctx, p, file)
	switch {
	case err == nil:
		return "md5-of-crcs " + hex.EncodeToString(sum), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, source.ErrChanged), errors.Is(err, fs.ErrNotExist):
		return "", &fs.PathError{Op: "checksum", Path: s.display(p), Err: err}
	}
	return "", nil
}

// checksum asks the datanodes once. The file must be the listed one before and afterwards.
func (s *Source) checksum(ctx context.Context, p string, listed source.File) (sum []byte, err error) {
	x, err := s.newSession(ctx)
	if err != nil {
		return nil, err
	}
	defer x.close()
	var f *lib.FileReader
	if err := x.ask(func() (err error) { f, err = x.client.Open(p); return err }); err != nil {
		return nil, err
	}
	if err := errors.Join(check(listed, f.Stat()), readable(f.Stat())); err != nil {
		return nil, err
	}
	x.sums = new(blockSums)
	if err := x.do(func() (err error) { sum, err = f.Checksum(); return err }); err != nil {
		return nil, err
	}
	size := max(1, int64(status(f.Stat()).GetBlocksize()))
	if blocks := (listed.Size + size - 1) / size; x.sums.n < blocks {
		return nil, fmt.Errorf("%d checksums of %d blocks", x.sums.n, blocks)
	}
	return sum, x.ask(func() error {
		now, err := x.client.Stat(p)
		if err != nil {
			return err
		}
		return check(listed, now)
	})
}

// blockSums counts the checksums of blocks that datanodes have answered with. The library takes an answer without one, such as a refusal,
// for an empty checksum.
type blockSums struct{ n int64 }

// Fields of BlockOpResponseProto and OpBlockChecksumResponseProto (hadoop-hdfs-client, datatransfer.proto).
const (
	fieldOpStatus      = 1 // 0 is success
	fieldChecksum      = 3
	fieldBlockChecksum = 3
	md5Size            = 16
)

// add checks an answer, without its length.
func (b *blockSums) add(answer []byte) error {
	status, _ := protoField(answer, fieldOpStatus)
	_, sums := protoField(answer, fieldChecksum)
	if _, sum := protoField(sums, fieldBlockChecksum); status != 0 || len(sum) != md5Size {
		return errors.New("the datanode has no checksum of the block")
	}
	b.n++
	return nil
}
