package parquet

import (
	"encoding/binary"
	"errors"
)

type value struct {
	bits     uint64 // of a number or boolean
	bytes    []byte // of everything else
	def, rep int16  // levels
}

// booleans are what the numbers of boolean columns stand for.
var booleans = []value{{bits: 0}, {bits: 1}}

var (
	errLevelsCut  = errors.New("the levels are truncated or malformed")
	errValuesCut  = errors.New("the values are truncated")
	errIndexesCut = errors.New("the indexes of values are truncated or malformed")
	errIndex      = errors.New("an index is beyond the dictionary")
)

// page is what has not been taken of a data page.
type page struct {
	left       int64 // values, nulls included
	reps, defs hybrid
	// The values that are there are PLAIN or, if there is a dictionary, indexes of it.
	plain      []byte
	dictionary []value
	indexes    hybrid
}

// take sets elements of out to the next values of a column's page, and returns how many. numbers is room for as many.
func (p *page) take(out []value, numbers []uint32, leaf *node) (int, error) {
	out = out[:min(int64(len(out)), p.left)]
	present, err := p.takeLevels(out, numbers[:len(out)], leaf)
	switch {
	case err != nil:
	case p.dictionary != nil:
		err = p.takeIndexed(out, numbers[:present], leaf)
	default:
		err = p.takePlain(out, leaf)
	}
	p.left -= int64(len(out))
	return len(out), err
}

// takeLevels sets the levels, and returns how many values are there.
func (p *page) takeLevels(out []value, numbers []uint32, leaf *node) (present int, err error) {
	most := value{def: int16(leaf.def)}
	if leaf.def == 0 {
		for i := range out {
			out[i] = most
		}
		return len(out), nil
	}
	if !p.defs.read(numbers) {
		return 0, errLevelsCut
	}
	for i, def := range numbers {
		if def > uint32(leaf.def) {
			return 0, errLevels
		}
		out[i] = value{def: int16(def)}
		if out[i].def == most.def {
			present++
		}
	}
	if leaf.rep == 0 {
		return present, nil
	}
	if !p.reps.read(numbers) {
		return 0, errLevelsCut
	}
	for i, rep := range numbers {
		if rep > uint32(leaf.rep) {
			return 0, errLevels
		}
		out[i].rep = int16(rep)
	}
	return present, nil
}

// takeIndexed sets values that are in a dictionary. numbers has room for the index of each.
func (p *page) takeIndexed(out []value, numbers []uint32, leaf *node) error {
	if !p.indexes.read(numbers) {
		return errIndexesCut
	}
	for i := range out {
		if int(out[i].def) < leaf.def {
			continue
		}
		index := numbers[0]
		numbers = numbers[1:]
		if uint64(index) >= uint64(len(p.dictionary)) {
			return errIndex
		}
		v := &p.dictionary[index]
		out[i].bits, out[i].bytes = v.bits, v.bytes
	}
	return nil
}

// takePlain sets values with the encoding PLAIN. The bytes of values are those of the page.
func (p *page) takePlain(out []value, leaf *node) error {
	b, size := p.plain, uint64(leaf.plainSize())
	for i := range out {
		v := &out[i]
		if int(v.def) < leaf.def {
			continue
		}
		if uint64(len(b)) < size {
			return errValuesCut
		}
		switch leaf.physical {
		case physicalInt32, physicalFloat:
			v.bits = uint64(int32(binary.LittleEndian.Uint32(b)))
			b = b[4:]
		case physicalInt64, physicalDouble:
			v.bits = binary.LittleEndian.Uint64(b)
			b = b[8:]
		case physicalBytes:
			n := uint64(binary.LittleEndian.Uint32(b))
			if b = b[4:]; uint64(len(b)) < n {
				return errValuesCut
			}
			v.bytes, b = b[:n:n], b[n:]
		default:
			v.bytes, b = b[:size:size], b[size:]
		}
	}
	p.plain = b
	return nil
}
