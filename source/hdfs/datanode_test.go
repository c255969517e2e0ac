package hdfs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	blockSize  = 100_000 // of the files that tests play, no multiple of anything
	chunkSize  = 512     // with a checksum of its own
	packetSize = 64 << 10
)

// file is a simulated file: namenodes return it for every path, and datanodes,
// d0:1 and so on, have all its blocks.
type file struct {
	mu        sync.Mutex
	data      []byte
	id, mtime uint64
	gone      bool
	datanodes int
}

func newFile(size, datanodes int) *file {
	f := &file{data: make([]byte, size), id: 1, mtime: 1_700_000_000_000, datanodes: datanodes}
	rng := rand.NewChaCha8([32]byte{byte(size)})
	rng.Read(f.data)
	return f
}

// change changes the file under everybody's eyes.
func (f *file) change(how func(*file)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how(f)
}

// namenode plays the namenode of the file.
func (f *file) namenode() func(net.Conn) {
	return answers(func(method string) answer {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.gone:
			return answer{}
		case method == "getFileInfo":
			return answer{message: text(nil, 1, f.status())}
		case method == "getBlockLocations":
			return answer{message: text(nil, 1, f.locations())}
		case method == "getServerDefaults":
			return answer{message: text(nil, 1, number(number(number(number(number(nil, 1, 1), 2, chunkSize), 3, 1), 4, 1), 5, 1))}
		}
		return answer{exception: "java.lang.UnsupportedOperationException", text: method}
	})
}

func (f *file) status() []byte {
	b := number(text(number(nil, 1, isFile), 2, ""), 3, uint64(len(f.data)))
	b = text(text(text(b, 4, number(nil, 1, 0o644)), 5, "me"), 6, "us")
	return number(number(number(b, 7, f.mtime), 8, 0), 13, f.id)
}

func (f *file) locations() []byte {
	b := number(nil, 1, uint64(len(f.data)))
	for offset := 0; offset < len(f.data); offset += blockSize {
		id := number(number(number(text(nil, 1, "pool"), 2, f.id<<32|uint64(offset)), 3, 1), 4, uint64(min(blockSize, len(f.data)-offset)))
		block := number(text(nil, 1, id), 2, uint64(offset))
		for i := range f.datanodes {
			host := string(rune('0' + i))
			node := text(text(text(nil, 1, "d"+host), 2, "d"+host), 3, host)
			block = text(block, 3, text(nil, 1, number(number(number(node, 4, 1), 5, 1), 6, 1)))
		}
		block = text(number(block, 4, 0), 5, text(text(text(text(nil, 1, ""), 2, ""), 3, ""), 4, ""))
		b = text(b, 2, block)
	}
	return number(number(b, 3, 0), 5, 1)
}

// A datanode is how one of them behaves. The zero value is as it should be.
type datanode struct {
	spoilt  func(offset int) bool // the byte is wrong, though its checksum is right
	cut     int                   // if not 0, the connection ends after that many bytes of data
	short   bool                  // blocks end before their end
	nothing bool                  // no packet comes
	slow    time.Duration         // between one byte and the next
	refuses bool                  // reads
	header  func(b []byte) []byte // replaces the header of packets
	chunk   uint64                // claimed size of chunks; 0 for the actual one
}

// serve plays a datanode that has the file.
func (d datanode) serve(f *file) func(net.Conn) {
	return func(c net.Conn) {
		block, offset, err := readBlockRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		f.mu.Lock()
		start := int(uint32(block))
		data := f.data[min(start, len(f.data)):]
		there := block>>32 == f.id
		f.mu.Unlock()
		data = data[:min(len(data), blockSize)]
		if d.refuses || !there {
			_, _ = c.Write(protowire.AppendBytes(nil, text(number(nil, 1, 1), 5, "no such block")))
			return
		}
		size := d.chunk
		if size == 0 {
			size = chunkSize
		}
		first := offset / chunkSize * chunkSize
		info := number(text(nil, 1, number(number(nil, 1, 2), 2, size)), 2, uint64(first))
		if _, err := c.Write(protowire.AppendBytes(nil, text(number(nil, 1, 0), 4, info))); err != nil || d.nothing {
			_, _ = io.Copy(io.Discard, c)
			return
		}
		d.stream(c, data, start, first)
	}
}

// stream sends a block from first on, where a chunk begins.
func (d datanode) stream(c net.Conn, data []byte, start, first int) {
	if d.short {
		data = data[:max(first, len(data)-1000)]
	}
	sent := 0
	for at := first; ; {
		n := min(packetSize, len(data)-at)
		packet := d.packet(data, start, at, n)
		if d.cut > 0 && sent+len(packet) > d.cut {
			_, _ = c.Write(packet[:d.cut-sent])
			return
		}
		if err := d.write(c, packet); err != nil || n == 0 {
			return
		}
		at += n
		sent += len(packet)
	}
}

func (d datanode) write(c net.Conn, packet []byte) error {
	if d.slow == 0 {
		_, err := c.Write(packet)
		return err
	}
	for part := range slices.Chunk(packet, 1) {
		time.Sleep(d.slow)
		if _, err := c.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (d datanode) packet(data []byte, start, at, n int) []byte {
	b := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), uint64(at))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), 1)
	b = number(b, 3, protowire.EncodeBool(n == 0))
	header := protowire.AppendFixed32(protowire.AppendTag(b, 4, protowire.Fixed32Type), uint32(n))
	if d.header != nil {
		header = d.header(b)
	}
	var sums, body []byte
	for chunk := at; chunk < at+n; chunk += chunkSize {
		part := data[chunk:min(chunk+chunkSize, at+n)]
		sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(part, crc32.MakeTable(crc32.Castagnoli)))
	}
	for i := range n {
		v := data[at+i]
		if d.spoilt != nil && d.spoilt(start+at+i) {
			v ^= 1
		}
		body = append(body, v)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(4+len(sums)+n))
	out = append(binary.BigEndian.AppendUint16(out, uint16(len(header))), header...)
	return append(append(out, sums...), body...)
}

// readBlockRequest reads an OpReadBlockProto.
func readBlockRequest(r *bufio.Reader) (block uint64, offset int, err error) {
	if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
		return 0, 0, err
	}
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, 0, err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, 0, err
	}
	id := field(field(field(b, 1).bytes, 1).bytes, 1).bytes
	if id == nil {
		return 0, 0, errors.New("no block")
	}
	return field(id, 2).number, int(field(b, 2).number), nil
}
