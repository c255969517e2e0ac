package store

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/internal/knownjson"
)

// listName is the file in the directory of a content that lists what is known of its blocks. Its body is
//
//	[{"partition":0,"size":2345,"mod_time":1767225600000000,"records":20,"footer":305419896,"raw_bytes":5000,"max_value":300,
//	  "made":"…","of":20},…]
//
// where mod_time is in microseconds, footer is the checksum in the block's footer, and the last two members are a Made: its Hash, Outline and Content, and its Records. It is a cache that
// saves work of starts and loads: a file that is missing or damaged lists nothing. So it is not synced.
const listName = "BLOCKS.json"

var listFile = fileKind{name: "blocks", version: 3, limit: 128 << 20, cache: true}

// Listed is what the list says of a block.
type Listed struct {
	blocks.Known       // of a small block; zero for a large one
	RawBytes     int64 // see blocks.Properties
	MaxValue     int64
}

// Describe returns what is to be listed of an open block, of which was is listed.
func Describe(r *blocks.Reader, was Listed) Listed {
	known := r.Known()
	if known.Size > 0 && known == was.Known {
		return was // it may not have been read
	}
	p := r.Properties()
	return Listed{known, p.RawBytes, p.MaxValue}
}

// listEntry is an element of the list.
type listEntry struct {
	partition int
	Listed
	made Made // the zero Made if it is not known
}

// entries returns the list by partition, which is read once. d.listing is held.
func (d *Dir) entries() []listEntry {
	if d.list == nil {
		d.list = make([]listEntry, d.manifest.Partitions)
		for p := range d.list {
			d.list[p].partition = p
		}
		for _, e := range readList(d.store.fs, d.path, d.manifest.Partitions) {
			d.list[e.partition] = e
		}
	}
	return d.list
}

// List returns what is listed of the blocks, by partition; zero values for those that are not listed.
func (d *Dir) List() []Listed {
	d.listing.Lock()
	defer d.listing.Unlock()
	list := make([]Listed, d.manifest.Partitions)
	for p, e := range d.entries() {
		if e.Size > 0 {
			list[p] = e.Listed
		}
	}
	return list
}

// Made returns what the block of partition p was made from, and false if that is not known.
func (d *Dir) Made(p int) (Made, bool) {
	d.listing.Lock()
	defer d.listing.Unlock()
	if !d.has(p) {
		return Made{}, false
	}
	m := d.entries()[p].made
	return m, m.Hash != ""
}

// SetList replaces what List returns, and writes it with all that Record has noted.
func (d *Dir) SetList(list []Listed) error {
	d.listing.Lock()
	defer d.listing.Unlock()
	entries := slices.Clone(d.entries())
	for p := range entries {
		if entries[p].Listed = (Listed{}); p < len(list) {
			entries[p].Listed = list[p]
		}
	}
	d.store.mu.RLock() // a directory that is not gone stays so meanwhile
	defer d.store.mu.RUnlock()
	data, err := encodeList(entries)
	if err == nil && !d.gone {
		err = d.store.write(listFile, filepath.Join(d.path, listName), data)
	}
	if err != nil {
		return fmt.Errorf("listing the blocks of %s: %w", d.path, err)
	}
	d.list = entries
	return nil
}

// Record notes what blocks were made from, for the next SetList to write.
func (d *Dir) Record(made []Made) error {
	d.listing.Lock()
	defer d.listing.Unlock()
	for _, m := range made {
		if !m.Valid() || !d.has(m.Partition) {
			return fmt.Errorf("%s: partition %d of %d was made from %.100q", d.path, m.Partition, d.manifest.Partitions, m.Hash)
		}
	}
	for _, m := range made {
		d.entries()[m.Partition].made = m
	}
	return nil
}

// readList reads the list in the directory of a content, with the blocks of less than some partitions. There are none in a file that is
// missing, or not as it was written.
func readList(f fsys.FS, dir string, partitions int) []listEntry {
	data, err := listFile.read(f, filepath.Join(dir, listName))
	if err != nil {
		return nil
	}
	return decodeList(data, partitions)
}

func decodeList(data []byte, partitions int) (entries []listEntry) {
	body, err := listFile.body(data, listName)
	if err != nil {
		return nil
	}
	entries = make([]listEntry, 0, min(bytes.Count(body, []byte("{")), partitions))
	r := knownjson.NewReader(body)
	for before := "["; r.OK && string(r.Rest) != "]"; before = "," {
		r.Literal(before)
		e := listEntry{partition: int(r.Number(`{"partition":`))}
		e.Size, e.ModTime, e.Records = r.Number(`,"size":`), r.Number(`,"mod_time":`), r.Number(`,"records":`)
		footer := r.Number(`,"footer":`)
		e.Footer = uint32(footer)
		e.RawBytes, e.MaxValue = r.Number(`,"raw_bytes":`), r.Number(`,"max_value":`)
		made, of := string(r.Text(`,"made":`)), r.Number(`,"of":`)
		if len(made) >= hashDigits+outlineDigits {
			hash, rest := made[:hashDigits], made[hashDigits:]
			e.made = Made{Partition: e.partition, Hash: hash, Outline: rest[:outlineDigits], Content: rest[outlineDigits:], Records: of}
		}
		r.Literal("}")
		if !r.OK || e.partition >= partitions || footer > math.MaxUint32 {
			return nil
		}
		entries = append(entries, e)
	}
	if !r.OK {
		return nil
	}
	return entries
}

// encodeList returns the content of the file.
func encodeList(entries []listEntry) ([]byte, error) {
	body := []byte("[")
	for p, e := range entries {
		if e.made.Hash == "" && e.Size == 0 {
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"partition":%d,"size":%d,"mod_time":%d,"records":%d,"footer":%d,"raw_bytes":%d,"max_value":%d,`, p, e.Size, e.ModTime,
			e.Records, e.Footer, e.RawBytes, e.MaxValue)
		body = fmt.Appendf(body, `"made":"%s%s%s","of":%d}`, e.made.Hash, e.made.Outline, e.made.Content, e.made.Records)
	}
	return listFile.seal(append(body, ']'))
}
