package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sequins/blocks"
)

const (
	hashDigits    = 64 // of Made.Hash
	outlineDigits = 16
	maxContent    = 64
)

// Made is what the block of a partition was made from.
type Made struct {
	Partition int `json:"partition"`
	// Hash is a SHA-256 of everything that determines the block, as hexadecimal digits, and Outline the first 8 bytes of a
	// hash of the part of it that is known without reading a file.
	Hash    string `json:"hash"`
	Outline string `json:"outline"`
	// Content and Records are those of the block, see blocks.Properties.
	Content string `json:"content"`
	Records int64  `json:"records"`
}

// A Former is a block in the directory of another content of the db.
type Former struct {
	Made
	Path string
}

// Valid reports whether the fields have the form that they should.
func (m Made) Valid() bool {
	return 0 <= m.Partition && m.Partition < maxPartitions && m.Records >= 0 && isHex(m.Hash, hashDigits) && isHex(m.Outline, outlineDigits) &&
		len(m.Content) <= maxContent && isHex(m.Content, len(m.Content))
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// Is reports whether a block with these properties is that of m.
func (m Made) Is(p blocks.Properties) bool {
	return p.Partition == m.Partition && p.ContentHash == m.Content && p.Records == m.Records
}

// Former lists blocks of all other contents of the db of which it is known what they were made from, those of the newest version first. A
// block may be missing, damaged or have another content.
func (s Staging) Former() (all []Former, err error) {
	db := filepath.Dir(filepath.Dir(s.Path))
	contents, err := inputs(s.fileSystem(), db)
	for _, in := range slices.Backward(contents) {
		dir := filepath.Join(db, in.Name, in.Hash)
		if dir == s.Path {
			continue
		}
		for _, e := range readList(s.fileSystem(), dir, maxPartitions) {
			if e.made.Hash != "" {
				all = append(all, Former{e.made, filepath.Join(dir, blockName(e.partition))})
			}
		}
	}
	return all, err
}

// LinkBlock makes the file of a former block that of a finished block too, to be given to Publish or RemoveBlock, and returns its name. It
// does not check the block, which is durable. The error wraps [fs.ErrNotExist] if the former content has been removed.
func (s Staging) LinkBlock(f Former) (name string, err error) {
	if !strings.HasSuffix(f.Path, blockSuffix) || filepath.Base(f.Path) != blockName(f.Partition) {
		return "", fmt.Errorf("%s is not the block of partition %d", f.Path, f.Partition)
	}
	name = s.FinishedPath(f.Partition)
	return name, s.fileSystem().Link(f.Path, name)
}
