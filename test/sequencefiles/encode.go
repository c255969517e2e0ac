package sequencefiles

import "encoding/binary"

// wrap appends the serialised form of b.
func wrap(dst []byte, class string, b []byte) []byte {
	switch class {
	case BytesWritable:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	case Text:
		dst = AppendLength(dst, len(b))
	}
	return append(dst, b...)
}

// AppendLength appends the vint for a length, 0 … 2³¹-1: Hadoop's WritableUtils.writeVInt.
func AppendLength(dst []byte, v int) []byte {
	switch {
	case v < 1<<7:
		return append(dst, byte(v))
	case v < 1<<8:
		return append(dst, 0x8f, byte(v)) // 0x8f is -113
	case v < 1<<16:
		return append(dst, 0x8e, byte(v>>8), byte(v))
	case v < 1<<24:
		return append(dst, 0x8d, byte(v>>16), byte(v>>8), byte(v))
	default:
		return append(dst, 0x8c, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
}
