package parquet

import (
	"time"

	"sequins/internal/render"
)

// The members of LogicalType with a rendering of their own. INTERVAL has a reserved number, and writers only give it a
// converted type.
const (
	logicalString    = 1
	logicalMap       = 2
	logicalList      = 3
	logicalEnum      = 4
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
	logicalInterval  = 9
	logicalInteger   = 10
	logicalUnknown   = 11
	logicalJSON      = 12
	logicalUUID      = 14
	logicalFloat16   = 15
)

// The members of TimeUnit.
const (
	unitMillis = 1
	unitMicros = 2
	unitNanos  = 3
)

// The converted types of parquet.thrift, which files from before 2018 have alone.
const (
	convertedDecimal  = 5
	convertedInterval = 21
)

var converted = map[int64]logicalType{
	0:                 {id: logicalString}, // UTF8
	1:                 {id: logicalMap},
	2:                 {id: logicalMap}, // MAP_KEY_VALUE
	3:                 {id: logicalList},
	4:                 {id: logicalEnum},
	convertedDecimal:  {id: logicalDecimal},
	6:                 {id: logicalDate},
	7:                 {id: logicalTime, unit: unitMillis},
	8:                 {id: logicalTime, unit: unitMicros},
	9:                 {id: logicalTimestamp, unit: unitMillis, utc: true},
	10:                {id: logicalTimestamp, unit: unitMicros, utc: true},
	11:                {id: logicalInteger, width: 8},
	12:                {id: logicalInteger, width: 16},
	13:                {id: logicalInteger, width: 32},
	14:                {id: logicalInteger, width: 64},
	15:                {id: logicalInteger, width: 8, signed: true},
	16:                {id: logicalInteger, width: 16, signed: true},
	17:                {id: logicalInteger, width: 32, signed: true},
	18:                {id: logicalInteger, width: 64, signed: true},
	19:                {id: logicalJSON},
	convertedInterval: {id: logicalInterval},
}

type logicalType struct {
	id     int // of the field; 0 if none is set
	scale  int64
	unit   int // of the field in TimeUnit; 0 if none is set
	utc    bool
	width  int8
	signed bool
}

// logicalType reads a LogicalType, of which one member is set.
func (r *thriftReader) logicalType(t *logicalType) {
	r.fields(func(id int, kind byte) bool {
		t.id = id
		if kind != thriftStruct {
			return false
		}
		switch id {
		case logicalDecimal:
			r.read(field{1, &t.scale})
		case logicalTime, logicalTimestamp:
			r.read(field{1, &t.utc}, field{2, structure(func() { r.timeUnit(t) })})
		case logicalInteger:
			r.read(field{1, &t.width}, field{2, &t.signed})
		default:
			r.read()
		}
		return true
	})
}

// timeUnit reads a TimeUnit, of which one member is set.
func (r *thriftReader) timeUnit(t *logicalType) {
	r.fields(func(id int, _ byte) bool {
		t.unit = id
		return false
	})
}

// orConverted returns the type, or that of a converted type if there is none, as in old files, or if it is UNKNOWN, as
// parquet-mr writes it beside the converted type INTERVAL.
func (t logicalType) orConverted(id, scale int64) logicalType {
	if t.id != 0 && t.id != logicalUnknown {
		return t
	}
	t = converted[id]
	if t.id == logicalDecimal {
		t.scale = scale
	}
	return t
}

// bits returns how many bits the integers of a type have: up to 32 are of INT32, more of INT64. It is 0 if both are
// allowed.
func (t logicalType) bits() int64 {
	switch t.id {
	case logicalDate:
		return 32
	case logicalTimestamp:
		return 64
	case logicalTime:
		if t.unit == unitMicros || t.unit == unitNanos {
			return 64
		}
		return 32
	case logicalInteger:
		return int64(t.width)
	}
	return 0
}

// isDecimal reports whether it is a decimal of a scale that can be rendered.
func (t logicalType) isDecimal() bool {
	return t.id == logicalDecimal && 0 <= t.scale && t.scale <= render.MaxScale
}

func (t logicalType) timeUnit() time.Duration {
	switch t.unit {
	case unitMicros:
		return time.Microsecond
	case unitNanos:
		return time.Nanosecond
	}
	return time.Millisecond
}
