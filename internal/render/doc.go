// Package render converts fields of records to bytes to serve, in the same way for all input formats whose records have
// fields (Avro and Parquet): a single field becomes text (AppendText), a record, list or map becomes JSON, in which the formats put
// the values (AppendJSON) and names (AppendName).
//
// A value is nil or a bool, int64, uint64, float32, float64, string, Text or []byte. The formats convert logical types first:
//
//	decimal                  its digits, with as many decimals as its scale: "12.50"
//	date                     "2026-01-31"
//	timestamp, an instant    RFC 3339 in UTC, with the decimals of its unit: "2026-01-31T10:00:00.500Z"
//	timestamp, local         the same without the Z
//	time of day              "10:00:00.500"; "24:00:00.000" and "-00:00:01.000" outside of the day
//	uuid                     "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
//
// These are strings in JSON. Milliseconds have three decimals, microseconds six and nanoseconds nine, also if these are
// zeros: keys of a column sort as its times do, in the years 0 to 9999.
//
// In JSON, each byte of a string that is not UTF-8 becomes U+FFFD; text by itself is as it is. Entries of a map are in the order of the
// file, and names that are equal in JSON are there as often as in the file. Bytes are unchanged in text, and base64
// (RFC 4648, with padding) in JSON. NaN and infinities, which JSON numbers cannot represent, are the strings "NaN",
// "Infinity" and "-Infinity".
package render
