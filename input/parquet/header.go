package parquet

// The types of pages.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

// pageHeader contains the fields of parquet.thrift's PageHeader that are used, and of the nested header of its kind.
type pageHeader struct {
	size                     int64 // of the header itself, in bytes
	kind                     int64
	compressed, uncompressed int64 // size of the page, in bytes
	crc                      uint32
	hasCRC                   bool

	values             int64
	encoding           int64
	defLevels          int64 // encoding of levels, in a data page
	repLevels          int64
	defSize, repSize   int64 // size of levels in bytes, in a data page V2
	valuesUncompressed bool  // in a data page V2
	header             int64 // the kind whose header there is
	headers            int   // how many of these there are; there must be one
}

func (h *pageHeader) isData() bool { return h.kind == pageData || h.kind == pageDataV2 }

// fieldCRC is the field of PageHeader that has the checksum.
const fieldCRC = 4

// parsePageHeader parses the header at the beginning of b; errCutOff if b does not contain all of it.
func parsePageHeader(b []byte) (h pageHeader, err error) {
	r := thriftReader{b: b}
	var crc int64
	compressed := true
	begin := func(kind int64) {
		h.header = kind
		h.headers++
	}
	seen := r.read(
		field{1, &h.kind},
		field{2, &h.uncompressed},
		field{3, &h.compressed},
		field{fieldCRC, &crc},
		field{5, structure(func() {
			begin(pageData)
			r.read(field{1, &h.values}, field{2, &h.encoding}, field{3, &h.defLevels}, field{4, &h.repLevels})
		})},
		field{7, structure(func() {
			begin(pageDictionary)
			r.read(field{1, &h.values}, field{2, &h.encoding})
		})},
		field{8, structure(func() {
			begin(pageDataV2)
			r.read(field{1, &h.values}, field{4, &h.encoding}, field{5, &h.defSize}, field{6, &h.repSize}, field{7, &compressed})
		})},
	)
	h.crc, h.hasCRC = uint32(crc), seen&(1<<fieldCRC) != 0
	h.valuesUncompressed = !compressed
	h.size = int64(len(b) - len(r.b))
	return h, r.err
}
