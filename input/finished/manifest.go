// Package finished owns the format of finished versions: blocks that a build has made of a version once, for all
// nodes, in a directory of the source with a manifest, _BLOCKS.json. docs/FORMAT.md describes it.
//
// Package build writes the manifest after the last block, and package load reads it, before it copies blocks of
// that version. The manifest is hostile input like any other: Parse bounds everything in it and accepts only the bytes
// that Encode would write, so that code behind it can rely on each field.
package finished

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sequins/shard"
	"sequins/source"
)

// A manifest is one line of JSON,
//
//	{"format":3,"crc32c":"0123abcd","manifest":{…}}
//
// where crc32c is the CRC-32C of the bytes of the object behind "manifest", in 8 hexadecimal digits.
const Format = 3

// Limits of a manifest.
const (
	MaxSize = 32 << 20 // bytes; 65,536 blocks take 7 MiB

	maxText    = 256
	maxBlock   = 2 << 40 // bytes of a block; its pages begin below 1 TiB
	maxRecords = 1 << 46 // of a block
	hashBytes  = 16      // of XXH3
	maxCommas  = 4*shard.MaxPartitions + maxText
)

// ErrCorrupt is the class of errors of a manifest that is damaged, or does not describe the files beside it.
var ErrCorrupt = errors.New("the finished version is damaged")

// ErrIncomplete is wrapped by errors of Match for a block that is not there: a copy of the version has not finished, or its
// blocks were removed.
var ErrIncomplete = errors.New("the finished version is incomplete")

// ErrFormat is wrapped by errors for a manifest of a format that this release does not read.
var ErrFormat = errors.New("the format of the finished version is not supported")

// Manifest describes a finished version.
type Manifest struct {
	Release     string `json:"release"` // of sequins that built it
	Partitions  int    `json:"partitions"`
	Partitioner string `json:"partitioner"` // by name; shard.ParsePartitioner knows it
	// LastModified is the modification time of the newest file of the input, in UTC, and the zero time if that had no
	// files. It is in the manifest because the times of the block files differ between copies.
	LastModified time.Time `json:"last_modified"`
	Blocks       []Block   `json:"blocks"` // Blocks[i] is partition i
}

// Block describes the file of a block.
type Block struct {
	Name    string `json:"name"` // BlockName of its partition
	Size    int64  `json:"size"` // bytes
	Hash    string `json:"hash"` // in its footer, see blocks.Reader.Hash, in lower case
	Records int64  `json:"records"`
}

// BlockName is the name of the file with the block of partition p.
func BlockName(p int) string { return fmt.Sprintf("part-%05d%s", p, source.BlockSuffix) }

// Records returns the number of records of all blocks.
func (m *Manifest) Records() (n int64) {
	for i := range m.Blocks {
		n += m.Blocks[i].Records
	}
	return n
}

// Size returns the size of all blocks, in bytes.
func (m *Manifest) Size() (n int64) {
	for i := range m.Blocks {
		n += m.Blocks[i].Size
	}
	return n
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// envelope is what the file contains.
type envelope struct {
	Format   *int            `json:"format"`
	CRC      string          `json:"crc32c"`
	Manifest json.RawMessage `json:"manifest"`
}

// Encode returns the content of the file. A manifest that Parse would not accept is an error.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	format := Format
	data, err := json.Marshal(envelope{Format: &format, CRC: fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)), Manifest: body})
	if err == nil && len(data) >= MaxSize {
		err = fmt.Errorf("a manifest of %d bytes, of %d at most", len(data), MaxSize)
	}
	return append(data, '\n'), err
}

// Parse reads the content of the file at path, which is for errors. These wrap ErrCorrupt or ErrFormat.
func Parse(data []byte, path string) (*Manifest, error) {
	m, err := parse(data)
	if err != nil && !errors.Is(err, ErrFormat) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func parse(data []byte) (*Manifest, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("more than %d bytes", MaxSize)
	}
	var env envelope
	if err := json.Unmarshal(data, &env); err != nil {
		return nil, describe(err)
	}
	if env.Format == nil {
		return nil, errors.New("not a manifest: it has no format")
	}
	if *env.Format != Format {
		return nil, fmt.Errorf("%w: it is %d, and this release reads %d; update sequins, or build the version with a release that is as old", ErrFormat, *env.Format, Format)
	}
	if crc := fmt.Sprintf("%08x", crc32.Checksum(env.Manifest, castagnoli)); crc != env.CRC {
		return nil, fmt.Errorf("its checksum is %s, and should be %.16q", crc, env.CRC)
	}
	return decode(data, env.Manifest)
}

// decode reads the object behind "manifest". It must be as Encode writes it, to the byte: encoding/json tolerates
// members in another case, or twice.
func decode(data, body []byte) (*Manifest, error) {
	if n := bytes.Count(body, []byte(",")); n > maxCommas { // before memory for many small elements is taken
		return nil, fmt.Errorf("more elements than %d partitions can have", shard.MaxPartitions)
	}
	m := new(Manifest)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, describe(err)
	}
	again, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, data) {
		return nil, errors.New("it is not as sequins writes it")
	}
	return m, nil
}

// describe adds the offset to an error of encoding/json.
func describe(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("offset %d: %w", syntax.Offset, err)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("offset %d: %.200s is a %.40s", kind.Offset, kind.Field, kind.Value)
	}
	return err
}

// validate checks everything that other code relies on.
func (m *Manifest) validate() error {
	if _, err := shard.ParsePartitioner(m.Partitioner); err != nil {
		return fmt.Errorf("%.64q is not a partitioner that this release knows", m.Partitioner)
	}
	switch {
	case m.Partitions < 1 || m.Partitions > shard.MaxPartitions:
		return fmt.Errorf("%d partitions, of 1 to %d", m.Partitions, shard.MaxPartitions)
	case len(m.Blocks) != m.Partitions:
		return fmt.Errorf("%d blocks of %d partitions", len(m.Blocks), m.Partitions)
	case len(m.Release) > maxText || !utf8.ValidString(m.Release):
		return errors.New("the release is not a short text")
	case m.LastModified.Location() != time.UTC || m.LastModified.Year() < 0 || m.LastModified.Year() > 9999:
		return fmt.Errorf("last_modified is %v, which is not a time in UTC", m.LastModified)
	}
	for i := range m.Blocks {
		if err := m.Blocks[i].validate(i); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

func (b *Block) validate(p int) error {
	switch {
	case b.Name != BlockName(p):
		return fmt.Errorf("its name is %.100q and not %s", b.Name, BlockName(p))
	case b.Size < 0 || b.Size > maxBlock:
		return fmt.Errorf("%d bytes", b.Size)
	case b.Records < 0 || b.Records > maxRecords:
		return fmt.Errorf("%d records", b.Records)
	case len(b.Hash) != 2*hashBytes || strings.Trim(b.Hash, "0123456789abcdef") != "":
		return fmt.Errorf("%.100q is not a hash", b.Hash)
	}
	return nil
}

// Check compares a block, by the hash in its footer and its number of records, with what the manifest says of it. The error is ErrCorrupt.
func (b *Block) Check(hash string, records int64) error {
	if hash != b.Hash || records != b.Records {
		return fmt.Errorf("%w: it has the hash %s and %d records, and %s and %d in %s", ErrCorrupt, hash, records, b.Hash, b.Records, source.BlocksFile)
	}
	return nil
}

// Match compares the files of a version, in the order of their names, with the manifest. Errors name the file: a block that is
// missing is ErrIncomplete, a file that is not in the manifest or has another size ErrCorrupt.
func (m *Manifest) Match(files []source.File) error {
	for _, f := range files {
		if p, found := slices.BinarySearchFunc(m.Blocks, f.Name, func(b Block, name string) int { return strings.Compare(b.Name, name) }); !found {
			return fmt.Errorf("%s: %w: it is not in %s", f.Name, ErrCorrupt, source.BlocksFile)
		} else if f.Size != m.Blocks[p].Size {
			return fmt.Errorf("%s: %w: it has %d bytes, and %d in %s", f.Name, ErrCorrupt, f.Size, m.Blocks[p].Size, source.BlocksFile)
		}
	}
	for i := range m.Blocks {
		if i >= len(files) || files[i].Name != m.Blocks[i].Name {
			return fmt.Errorf("%s: %w: the file is missing", m.Blocks[i].Name, ErrIncomplete)
		}
	}
	return nil
}
