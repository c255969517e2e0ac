package datafile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
)

func (s *scanned) Describe() []Property {
	switch r := s.Format().(type) {
	case *sequencefile.Reader:
		return describeSequenceFile(r.Header())
	case *sparkey.Reader:
		return describeSparkey(r.Header())
	case *avro.Reader:
		return append([]Property{{"codec", r.Codec(), nil}}, s.describeFields(r.Fields(), r.Types())...)
	case *parquet.Reader:
		_, rows := r.Rows()
		found := []Property{{"rows", strconv.FormatInt(rows, 10), nil}, {"row groups", strconv.Itoa(r.Groups()), nil}}
		return append(found, s.describeFields(r.Fields(), r.Types())...)
	}
	return nil
}

func describeSequenceFile(h sequencefile.Header) []Property {
	found := []Property{
		{"format version", strconv.Itoa(h.Version), nil},
		{"key class", h.KeyClass, nil},
		{"value class", h.ValueClass, nil},
		{"compression", h.Compression.String(), nil},
	}
	if h.Codec != "" {
		found = append(found, Property{"codec", h.Codec, nil})
	}
	for _, name := range slices.Sorted(maps.Keys(h.Metadata)) {
		found = append(found, Property{"metadata", name + " = ", []byte(h.Metadata[name])})
	}
	return found
}

func describeSparkey(h sparkey.Header) []Property {
	found := []Property{
		{"format version", fmt.Sprintf("%d.%d", h.Major, h.Minor), nil},
		{"compression", h.Compression.String(), nil},
	}
	if h.Compression != sparkey.None {
		found = append(found, Property{"compression block", fmt.Sprintf("%d bytes", h.BlockSize), nil})
	}
	return append(found, Property{"longest key", fmt.Sprintf("%d bytes", h.MaxKeyLen), nil},
		Property{"longest value", fmt.Sprintf("%d bytes", h.MaxValueLen), nil})
}

// maxDescribed limits the fields that are described.
const maxDescribed = 100

// describeFields describes the fields of records, and which of them is the key.
func (s *scanned) describeFields(names, types []string) []Property {
	var fields []string
	for i, name := range names[:min(len(names), maxDescribed)] {
		fields = append(fields, name+" "+types[i])
	}
	if more := len(names) - maxDescribed; more > 0 {
		fields = append(fields, fmt.Sprintf("and %d more", more))
	}
	found := []Property{{"fields", strings.Join(fields, ", "), nil}}
	if s.key != "" {
		found = append(found, Property{"key", s.key, nil})
	}
	return found
}
