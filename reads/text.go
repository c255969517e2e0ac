package reads

import (
	"encoding/binary"
	"encoding/hex"

	"sequins/internal/http1"
)

// maxShown is the number of bytes of a key that are shown.
const maxShown = 1 << 10

// AppendTarget appends /<db>/<key>, escaped for logs. A key of more than 1 KiB is truncated.
func AppendTarget(b, db, key []byte) []byte {
	b = AppendEscaped(append(b, '/'), db)
	b = AppendEscaped(append(b, '/'), key[:min(len(key), maxShown)])
	if len(key) > maxShown {
		b = append(b, "..."...)
	}
	return b
}

// AppendEscaped appends s and percent-escapes all bytes except letters, digits and -._~/:@
func AppendEscaped(b, s []byte) []byte { return http1.AppendEscaped(b, s, "-._~/:@") }

// appendTag appends the ETag of a value with the given hash.
func appendTag(b []byte, hash uint64) []byte {
	var bytes [8]byte
	binary.BigEndian.PutUint64(bytes[:], hash)
	return append(hex.AppendEncode(append(b, '"'), bytes[:]), '"')
}
