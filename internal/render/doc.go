// Package render owns how a field of a record becomes bytes to serve, for the input formats whose records
// have fields (Avro and Parquet), so that both do it alike: a field by itself is text (AppendText), a
// record, list or map is JSON (AppendJSON).
//
// A value passes through as a tree of nil, bool, int64, uint64, float32, float64, string, Text, []byte, List and
// Record; a map is a Record, too. What a format knows of a number's meaning is applied before:
//
//	decimal                  its digits, with as many behind the point as its scale says: "12.50"
//	date                     "2026-01-31"
//	timestamp, an instant    RFC 3339 in UTC, with as much of a fraction as there is: "2026-01-31T10:00:00.5Z"
//	timestamp, local         the same without the Z, as no time zone is meant
//	time of day              "10:00:00.5"
//	uuid                     "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
//
// These are strings in JSON. Bytes are themselves in text, and base64 (RFC 4648, with padding) in JSON.
// NaN and infinities, for which JSON has no numbers, are the strings "NaN", "Infinity" and "-Infinity".
package render
