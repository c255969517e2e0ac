package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sequins/blocks"
	"sequins/internal/knownjson"
)

// listName is the file in the directory of a content that lists what is known of its blocks, one line of JSON,
//
//	{"format_version":2,"crc32c":"0123abcd","blocks":[{"partition":0,"size":2345,"mod_time":1767225600000000,"records":20,
//	"footer":305419896,"raw_bytes":5000,"max_value":300,"made":"…"},…]}
//
// where mod_time is in microseconds, footer is the checksum in the block's footer, made has the texts of Made, and crc32c is that of
// the array. It is a cache that saves work of starts and loads: a file that is missing, damaged or of another format version lists nothing.
// So it is not synced.
const (
	listName    = "BLOCKS.json"
	listVersion = 2
	maxList     = 128 << 20 // bytes
)

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
	text []byte // hash, outline and content of a Made, with spaces between them; empty if they are not known
}

// made returns what the block was made from, the zero Made if that is not known.
func (e *listEntry) made() Made {
	hash, rest, _ := strings.Cut(string(e.text), " ")
	outline, content, _ := strings.Cut(rest, " ")
	if m := (Made{Partition: e.partition, Hash: hash, Outline: outline, Content: content, Records: e.Records}); m.Valid() {
		return m
	}
	return Made{}
}

func (e *listEntry) setMade(m Made) {
	if e.text = nil; m.Hash != "" {
		e.text = fmt.Appendf(nil, "%s %s %s", m.Hash, m.Outline, m.Content)
	}
	if e.Size == 0 {
		e.Records = m.Records
	}
}

// List returns what is listed of the blocks, by partition; zero values for those that are not listed.
func (d *Dir) List() []Listed {
	d.listing.Lock()
	defer d.listing.Unlock()
	list := make([]Listed, d.manifest.Partitions)
	whole := d.eachListed(func(e listEntry) {
		if e.Size > 0 {
			list[e.partition] = e.Listed
		}
	})
	if !whole {
		clear(list)
	}
	return list
}

// Made returns what is known of what blocks were made from, in the order of their partitions.
func (d *Dir) Made() (all []Made) {
	d.listing.Lock()
	defer d.listing.Unlock()
	entries := d.readList()
	for p := range entries {
		m, recorded := d.recorded[p]
		if !recorded {
			m = entries[p].made()
		}
		if m.Hash != "" {
			all = append(all, m)
		}
	}
	return all
}

// readList returns the entries of the list by partition. d.listing is held.
func (d *Dir) readList() []listEntry {
	entries := make([]listEntry, d.manifest.Partitions)
	if !d.eachListed(func(e listEntry) { entries[e.partition] = e }) {
		clear(entries)
	}
	return entries
}

// eachListed passes the entries of the list to take. It is false if there is no list, or a damaged one.
func (d *Dir) eachListed(take func(listEntry)) bool {
	data, err := readFile(d.store.fs, filepath.Join(d.path, listName), maxList)
	return err == nil && readList(data, d.manifest.Partitions, take)
}

// SetList replaces what List returns.
func (d *Dir) SetList(list []Listed) error {
	d.listing.Lock()
	defer d.listing.Unlock()
	return d.writeList(func(entries []listEntry) {
		for p := range entries {
			m := entries[p].made()
			if entries[p].Listed = (Listed{}); p < len(list) {
				entries[p].Listed = list[p]
			}
			entries[p].setMade(m)
		}
	})
}

// Record notes what blocks were made from. They are listed when they are an eighth of all that are listed, or with the next SetList or
// SaveList.
func (d *Dir) Record(made []Made) error {
	d.listing.Lock()
	defer d.listing.Unlock()
	for _, m := range made {
		if !m.Valid() || !d.has(m.Partition) {
			return fmt.Errorf("%s: partition %d of %d was made from %.100q", d.path, m.Partition, d.manifest.Partitions, m.Hash)
		}
	}
	for _, m := range made {
		if d.recorded == nil {
			d.recorded = make(map[int]Made)
		}
		d.recorded[m.Partition] = m
	}
	if len(d.recorded) <= d.listed/8 {
		return nil
	}
	return d.writeList(func([]listEntry) {})
}

// SaveList lists all that Record has noted.
func (d *Dir) SaveList() error {
	d.listing.Lock()
	defer d.listing.Unlock()
	if len(d.recorded) == 0 {
		return nil
	}
	return d.writeList(func([]listEntry) {})
}

// writeList changes the list, and adds what was recorded. d.listing is held.
func (d *Dir) writeList(change func([]listEntry)) error {
	entries := d.readList()
	change(entries)
	for p, m := range d.recorded {
		entries[p].setMade(m)
	}
	data, listed := encodeList(entries)
	if err := d.replaceList(data); err != nil {
		return fmt.Errorf("listing the blocks of %s: %w", d.path, err)
	}
	d.recorded, d.listed = nil, listed
	return nil
}

func (d *Dir) replaceList(data []byte) error {
	d.store.mu.RLock() // a directory that is not gone stays so meanwhile
	defer d.store.mu.RUnlock()
	if d.gone {
		return nil
	}
	final := filepath.Join(d.path, listName)
	temp := d.store.tempName(final)
	f, err := d.store.fs.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.store.fs.Rename(temp, final)
	}
	if err != nil {
		err = errors.Join(err, d.store.fs.Remove(temp))
	}
	return err
}

// readList reads the content of the file, with the blocks of less than some partitions, and passes each to take. It is false if the content
// is not as it was written.
func readList(data []byte, partitions int, take func(listEntry)) bool {
	r := knownjson.NewReader(data)
	version := r.Number(`{"format_version":`)
	crc := string(r.Text(`,"crc32c":`))
	r.Literal(`,"blocks":`)
	list, whole := bytes.CutSuffix(r.Rest, []byte("}\n"))
	if !r.OK || !whole || version != listVersion || crc != checksum(list) {
		return false
	}
	r.Rest = list
	for before := "["; r.OK && string(r.Rest) != "]"; before = "," {
		r.Literal(before)
		e, ok := readEntry(r)
		if !ok || e.partition >= partitions {
			return false
		}
		take(e)
	}
	return r.OK
}

func readEntry(r *knownjson.Reader) (e listEntry, ok bool) {
	e.partition = int(r.Number(`{"partition":`))
	e.Size, e.ModTime, e.Records = r.Number(`,"size":`), r.Number(`,"mod_time":`), r.Number(`,"records":`)
	footer := r.Number(`,"footer":`)
	e.Footer = uint32(footer)
	e.RawBytes, e.MaxValue = r.Number(`,"raw_bytes":`), r.Number(`,"max_value":`)
	e.text = r.Text(`,"made":`)
	r.Literal("}")
	return e, r.OK && e.partition < maxPartitions && footer <= math.MaxUint32
}

// encodeList returns the content of the file, and the number of blocks of which it says what they were made from.
func encodeList(entries []listEntry) (data []byte, made int) {
	list := []byte("[")
	for p, e := range entries {
		if len(e.text) > 0 {
			made++
		} else if e.Size == 0 {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = appendNumber(list, `{"partition":`, int64(p))
		list = appendNumber(list, `,"size":`, e.Size)
		list = appendNumber(list, `,"mod_time":`, e.ModTime)
		list = appendNumber(list, `,"records":`, e.Records)
		list = appendNumber(list, `,"footer":`, int64(e.Footer))
		list = appendNumber(list, `,"raw_bytes":`, e.RawBytes)
		list = appendNumber(list, `,"max_value":`, e.MaxValue)
		list = append(append(append(list, `,"made":"`...), e.text...), `"}`...)
	}
	list = append(list, ']')
	return slices.Concat(fmt.Appendf(nil, `{"format_version":%d,"crc32c":"%s","blocks":`, listVersion, checksum(list)), list, []byte("}\n")), made
}

func appendNumber(dst []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(dst, name...), v, 10)
}
