// Package json is what Apache Arrow needs of github.com/goccy/go-json, by encoding/json. go.mod replaces that module with this
// one: sequins writes no JSON with Arrow, and the other takes an eighth of the time to compile the program. Arrow has the same
// file for builds with the tag arrow_json_stdlib.
package json

import (
	"encoding/json"
	"io"
)

// Types of encoding/json.
type (
	Decoder            = json.Decoder
	Encoder            = json.Encoder
	Marshaler          = json.Marshaler
	Delim              = json.Delim
	UnmarshalTypeError = json.UnmarshalTypeError
	Number             = json.Number
	Unmarshaler        = json.Unmarshaler
	RawMessage         = json.RawMessage
)

// Marshal is json.Marshal.
func Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Unmarshal is json.Unmarshal.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// NewDecoder is json.NewDecoder.
func NewDecoder(r io.Reader) *Decoder { return json.NewDecoder(r) }

// NewEncoder is json.NewEncoder.
func NewEncoder(w io.Writer) *Encoder { return json.NewEncoder(w) }
