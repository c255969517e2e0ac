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

// The fields of PageHeader.
const (
	fieldKind         = 1
	fieldUncompressed = 2
	fieldCompressed   = 3
	fieldCRC          = 4
	fieldData         = 5
	fieldDictionary   = 7
	fieldDataV2       = 8
)

// parsePageHeader parses the header at the beginning of b; errCutOff if b does not contain all of it.
func parsePageHeader(b []byte) (h pageHeader, err error) {
	r := thriftReader{b: b}
	r.fields(func(id int, kind byte) bool {
		switch id {
		case fieldKind:
			return r.number(kind, &h.kind)
		case fieldUncompressed:
			return r.number(kind, &h.uncompressed)
		case fieldCompressed:
			return r.number(kind, &h.compressed)
		case fieldCRC:
			var n int64
			h.hasCRC = r.number(kind, &n)
			h.crc = uint32(n)
			return h.hasCRC
		}
		if kind != thriftStruct {
			return false
		}
		switch id {
		case fieldData:
			h.header = pageData
			h.data(&r)
		case fieldDictionary:
			h.header = pageDictionary
			h.dictionary(&r)
		case fieldDataV2:
			h.header = pageDataV2
			h.dataV2(&r)
		default:
			return false
		}
		h.headers++
		return true
	})
	h.size = int64(len(b) - len(r.b))
	return h, r.err
}

func (h *pageHeader) data(r *thriftReader) {
	r.fields(func(id int, kind byte) bool {
		switch id {
		case 1:
			return r.number(kind, &h.values)
		case 2:
			return r.number(kind, &h.encoding)
		case 3:
			return r.number(kind, &h.defLevels)
		case 4:
			return r.number(kind, &h.repLevels)
		}
		return false
	})
}

func (h *pageHeader) dictionary(r *thriftReader) {
	r.fields(func(id int, kind byte) bool {
		switch id {
		case 1:
			return r.number(kind, &h.values)
		case 2:
			return r.number(kind, &h.encoding)
		}
		return false
	})
}

func (h *pageHeader) dataV2(r *thriftReader) {
	r.fields(func(id int, kind byte) bool {
		switch id {
		case 1:
			return r.number(kind, &h.values)
		case 4:
			return r.number(kind, &h.encoding)
		case 5:
			return r.number(kind, &h.defSize)
		case 6:
			return r.number(kind, &h.repSize)
		case 7:
			var compressed bool
			ok := boolean(kind, &compressed)
			h.valuesUncompressed = ok && !compressed
			return ok
		}
		return false
	})
}
