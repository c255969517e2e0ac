package blocks

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime/debug"
	"unsafe"
)

// errFault is that the map cannot be read: the file has become shorter, or the disk cannot read a page. Reading from the
// file tells which.
var errFault = errors.New("the map of the file cannot be read")

// getMapped is get through the map. Memory of a map that the kernel cannot fill gives SIGBUS, which ends the process
// unless the goroutine has said that it is to panic.
//
// The memory behind the end of a file that was cut off is zeros up to the end of its page, and would be taken for a page
// without the key. So the last bytes of the file are looked at behind all others: they are there as long as it is whole.
func (r *Reader) getMapped(key []byte, s *Scratch) (v Value, found bool, err error) {
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	if v, found, err = r.get(key, s, true); !r.whole(s) {
		err = errFault
	}
	return v, found, err
}

// recoverFault, deferred, makes a fault in the map errFault.
func (r *Reader) recoverFault(before bool, err *error) {
	debug.SetPanicOnFault(before)
	p := recover()
	if p == nil {
		return
	}
	fault, ok := p.(interface{ Addr() uintptr })
	if !ok || fault.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(r.data))) >= uintptr(len(r.data)+os.Getpagesize()) {
		panic(p)
	}
	*err = errFault
}

// whole reports whether the file ends as it did when it was opened. The map must be guarded.
func (r *Reader) whole(s *Scratch) bool {
	return (r.trusted.has(r.props.Pages) || r.readMagic(s)) && binary.LittleEndian.Uint64(r.data[len(r.data)-len(magic):]) == magicNumber
}

var magicNumber = binary.LittleEndian.Uint64([]byte(magic))

// readMagic brings the end of the file into memory.
func (r *Reader) readMagic(s *Scratch) bool {
	b, err := r.read(s.end[:0], r.size-int64(len(magic)), len(magic))
	if err != nil || string(b) != magic {
		return false
	}
	r.trusted.set(r.props.Pages)
	return true
}

// known asks the filter, through the map as far as it is trusted.
func (r *Reader) known(hash uint64, s *Scratch) (ok bool, err error) {
	if r.data != nil {
		if ok, err = r.knownMapped(hash, s); err == nil || !errors.Is(err, errFault) {
			return ok, err
		}
	}
	return r.passes(hash, s, false)
}

func (r *Reader) knownMapped(hash uint64, s *Scratch) (ok bool, err error) {
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	return r.passes(hash, s, true)
}
