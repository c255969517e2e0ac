package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sequins/blocks"
	"sequins/internal/fsys"
)

// madeName is the file in the directory of a content that tells what its blocks were made from, a list of Made. It saves work of later
// loads: from a file that is missing or damaged nothing is known. So it is not synced.
const madeName = "MADE.json"

var madeFile = fileKind{name: "made", version: 1, limit: 128 << 20, cache: true}

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

// known returns what is known of the blocks by partition. The file is read once. d.recording is held.
func (d *Dir) known() map[int]Made {
	if d.made == nil {
		d.made = make(map[int]Made)
		for _, m := range readMade(d.store.fs, d.path) {
			d.made[m.Partition] = m
		}
	}
	return d.made
}

// Made returns what the block of partition p was made from, and false if that is not known.
func (d *Dir) Made(p int) (Made, bool) {
	d.recording.Lock()
	defer d.recording.Unlock()
	m, found := d.known()[p]
	return m, found && d.has(p)
}

// Record notes what blocks were made from, for the next SaveMade.
func (d *Dir) Record(made []Made) error {
	d.recording.Lock()
	defer d.recording.Unlock()
	for _, m := range made {
		if !m.Valid() || !d.has(m.Partition) {
			return fmt.Errorf("%s: partition %d of %d was made from %.100q", d.path, m.Partition, d.manifest.Partitions, m.Hash)
		}
	}
	for _, m := range made {
		d.known()[m.Partition], d.unsaved = m, true
	}
	return nil
}

// SaveMade writes what Record has noted.
func (d *Dir) SaveMade() error {
	d.recording.Lock()
	defer d.recording.Unlock()
	if !d.unsaved {
		return nil
	}
	body, err := json.Marshal(slices.SortedFunc(maps.Values(d.known()), func(a, b Made) int { return a.Partition - b.Partition }))
	if err != nil {
		return err
	}
	data, err := madeFile.seal(body)
	d.store.mu.RLock() // a directory that is not gone stays so meanwhile
	defer d.store.mu.RUnlock()
	if err == nil && !d.gone {
		err = d.store.write(madeFile, filepath.Join(d.path, madeName), data)
	}
	if err != nil {
		return fmt.Errorf("recording what the blocks of %s were made from: %w", d.path, err)
	}
	d.unsaved = false
	return nil
}

// readMade reads what is known of the blocks in the directory of a content.
func readMade(f fsys.FS, dir string) (all []Made) {
	data, err := madeFile.read(f, filepath.Join(dir, madeName))
	if err != nil {
		return nil
	}
	body, err := madeFile.body(data, madeName)
	if err != nil || json.Unmarshal(body, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(m Made) bool { return !m.Valid() })
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
		for _, m := range readMade(s.fileSystem(), dir) {
			all = append(all, Former{m, filepath.Join(dir, blockName(m.Partition))})
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
