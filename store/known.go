package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"sequins/blocks"
	"sequins/internal/knownjson"
)

// knownName is the file in a version's directory that lists what was known of its small blocks when they were last
// opened, one line of JSON,
//
//	{"format_version":1,"crc32c":"0123abcd","blocks":[{"partition":0,"size":2345,"mod_time":1767225600000000,"records":20,"footer":305419896},…]}
//
// where mod_time is in microseconds, footer is the checksum in the block's footer, and crc32c that of the array. Only the
// time that a start takes depends on it: a file that is missing, damaged or of another format version lists no blocks.
// So it is not synced.
const (
	knownName    = "BLOCKS.json"
	knownVersion = 1
)

// Known returns what was known of the version's small blocks, by partition; zero values for all others.
func (d *Dir) Known() []blocks.Known {
	known := make([]blocks.Known, d.manifest.Partitions)
	data, err := readFile(d.store.fs, filepath.Join(d.path, knownName), maxManifest)
	if err != nil || !parseKnown(data, known) {
		clear(known)
	}
	return known
}

// parseKnown reads the list of the blocks of a version. It is false if that is not as it was written.
func parseKnown(data []byte, known []blocks.Known) bool {
	r := knownjson.NewReader(data)
	version := r.Number(`{"format_version":`)
	crc := string(r.Text(`,"crc32c":`))
	r.Literal(`,"blocks":`)
	list, whole := bytes.CutSuffix(r.Rest, []byte("}\n"))
	if !r.OK || !whole || version != knownVersion || crc != manifestCRC(list) {
		return false
	}
	r.Rest = list
	for before := "["; r.OK && string(r.Rest) != "]"; before = "," {
		r.Literal(before)
		p := r.Number(`{"partition":`)
		k := blocks.Known{Size: r.Number(`,"size":`), ModTime: r.Number(`,"mod_time":`), Records: r.Number(`,"records":`)}
		footer := r.Number(`,"footer":`)
		k.Footer = uint32(footer)
		r.Literal("}")
		if p >= int64(len(known)) || footer > math.MaxUint32 {
			return false
		}
		known[p] = k
	}
	return r.OK
}

// SetKnown replaces the list that Known returns.
func (d *Dir) SetKnown(known []blocks.Known) error {
	if err := d.setKnown(encodeKnown(known)); err != nil {
		return fmt.Errorf("listing the blocks of %s: %w", d.path, err)
	}
	return nil
}

func (d *Dir) setKnown(data []byte) error {
	d.store.mu.RLock() // a directory that is not gone stays so meanwhile
	defer d.store.mu.RUnlock()
	if d.gone {
		return nil
	}
	final := filepath.Join(d.path, knownName)
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

func encodeKnown(known []blocks.Known) []byte {
	list := []byte("[")
	for p, k := range known {
		if k.Size == 0 {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = appendNumber(list, `{"partition":`, int64(p))
		list = appendNumber(list, `,"size":`, k.Size)
		list = appendNumber(list, `,"mod_time":`, k.ModTime)
		list = appendNumber(list, `,"records":`, k.Records)
		list = append(appendNumber(list, `,"footer":`, int64(k.Footer)), '}')
	}
	list = append(list, ']')
	return slices.Concat(fmt.Appendf(nil, `{"format_version":%d,"crc32c":"%s","blocks":`, knownVersion, manifestCRC(list)), list, []byte("}\n"))
}

func appendNumber(dst []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(dst, name...), v, 10)
}
