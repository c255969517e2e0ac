package sequencefile

import "encoding/binary"

// The classes that this package unwraps.
const (
	BytesWritable = "org.apache.hadoop.io.BytesWritable"
	Text          = "org.apache.hadoop.io.Text"
)

// wrapping is how a class serialises a string of bytes.
type wrapping uint8

const (
	bare      wrapping = iota // any other class: the serialised bytes are the value
	int32Size                 // BytesWritable: an int32 length before the bytes
	vintSize                  // Text: a vint length before the bytes
)

func wrappingOf(class string) wrapping {
	switch class {
	case BytesWritable:
		return int32Size
	case Text:
		return vintSize
	}
	return bare
}

// unwrap returns the bytes inside a serialised key or value; false if their length prefix is wrong.
func (w wrapping) unwrap(b []byte) ([]byte, bool) {
	switch w {
	case int32Size:
		if len(b) < 4 || binary.BigEndian.Uint32(b) != uint32(len(b)-4) {
			return nil, false
		}
		return b[4:], true
	case vintSize:
		n, size := decodeLength(b)
		return b[max(size, 0):], size > 0 && n == len(b)-size
	}
	return b, true
}
