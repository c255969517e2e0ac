// Package wire has what both ends of the HTTP interface spell alike: header fields, the frame of keys and values, and limits.
package wire

import "encoding/binary"

// Header fields.
const (
	Version = "X-Sequins-Version"  // of an answer: where it is from; of a request: the only version that may answer it
	AtLeast = "X-Sequins-At-Least" // of a request: the oldest version that may answer it
	Secret  = "X-Sequins-Cluster"  // of a request of a node: the secret of the cluster
)

// Bytes is the media type of keys and values in frames, and the default one of values.
const Bytes = "application/octet-stream"

const (
	// MaxKey is the maximum length of a key in bytes.
	MaxKey = 64 << 10
	// MaxHeader limits the header of an answer that a client reads, in bytes.
	MaxHeader = 64 << 10
)

// A frame is the length of a key or value, in big-endian order, and its bytes. Absent takes the place of the length of a
// value that does not exist, and in an ordered read, of the length of the key behind the last record.
const (
	LengthSize = 4
	Absent     = 1<<32 - 1
)

// AppendFrame appends the frame of a key or value.
func AppendFrame(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}
