package parquet

import (
	"encoding/binary"
	"math"
	"math/big"
	"time"

	"sequins/internal/render"
)

// The converted types of parquet.thrift that are rendered in a way of their own.
const (
	convertedUTF8            = 0
	convertedMap             = 1
	convertedMapKeyValue     = 2
	convertedList            = 3
	convertedEnum            = 4
	convertedDecimal         = 5
	convertedDate            = 6
	convertedTimeMillis      = 7
	convertedTimeMicros      = 8
	convertedTimestampMillis = 9
	convertedTimestampMicros = 10
	convertedUint8           = 11
	convertedUint16          = 12
	convertedUint32          = 13
	convertedUint64          = 14
	convertedJSON            = 19
	convertedInterval        = 21
)

// converter returns what makes values to render of those of a column, with the calendar of its file.
func converter(f *schemaElement, c *calendar) func(*value) any {
	switch f.physical {
	case physicalBoolean:
		return func(v *value) any { return v.bits != 0 }
	case physicalInt32, physicalInt64:
		show := integer(f, c)
		return func(v *value) any { return show(int64(v.bits)) }
	case physicalInt96:
		return func(v *value) any { return instant96(v.bytes, c) }
	case physicalFloat:
		return func(v *value) any { return math.Float32frombits(uint32(v.bits)) }
	case physicalDouble:
		return func(v *value) any { return math.Float64frombits(v.bits) }
	}
	show := octets(f)
	return func(v *value) any { return show(v.bytes) }
}

// integer renders INT32 and INT64.
func integer(f *schemaElement, c *calendar) func(int64) any {
	if scale, ok := decimalScale(f); ok {
		return func(n int64) any { return render.Decimal(big.NewInt(n), scale) }
	}
	switch t := f.logical; t.id {
	case logicalDate:
		return c.date()
	case logicalTime:
		return timeOfDay(t.duration())
	case logicalTimestamp:
		return c.timestamp(t.duration(), t.utc)
	case logicalInteger:
		return sized(t.width, t.signed)
	case 0:
		return oldInteger(f, c)
	}
	return signed
}

// oldInteger renders by the types of files from before 2018.
func oldInteger(f *schemaElement, c *calendar) func(int64) any {
	switch f.converted {
	case convertedDate:
		return c.date()
	case convertedTimeMillis:
		return timeOfDay(time.Millisecond)
	case convertedTimeMicros:
		return timeOfDay(time.Microsecond)
	case convertedTimestampMillis:
		return c.timestamp(time.Millisecond, true)
	case convertedTimestampMicros:
		return c.timestamp(time.Microsecond, true)
	case convertedUint8:
		return sized(8, false)
	case convertedUint16:
		return sized(16, false)
	case convertedUint32:
		return sized(32, false)
	case convertedUint64:
		return sized(64, false)
	}
	return signed
}

func signed(n int64) any { return n }

func date(n int64) any { return render.Date(n) }

func timeOfDay(unit time.Duration) func(int64) any {
	return func(n int64) any { return render.TimeOfDay(n, unit) }
}

func timestamp(unit time.Duration, utc bool) func(int64) any {
	return func(n int64) any { return render.Timestamp(n, unit, utc) }
}

// sized renders integers with a width. Those without a sign lie in signed ones of the same bits.
func sized(width int64, isSigned bool) func(int64) any {
	if isSigned || width <= 0 || width > 64 {
		return signed
	}
	return func(n int64) any { return uint64(n) << (64 - width) >> (64 - width) }
}

// duration returns the unit of a time or timestamp.
func (t logicalType) duration() time.Duration {
	switch t.unit {
	case 2:
		return time.Microsecond
	case 3:
		return time.Nanosecond
	}
	return time.Millisecond
}

// decimalScale reports whether a column has decimals, and how many digits are behind the point.
func decimalScale(f *schemaElement) (scale int, ok bool) {
	switch f.logical.id {
	case logicalDecimal:
		scale, ok = int(f.logical.scale), true
	case 0:
		scale, ok = int(f.scale), f.converted == convertedDecimal
	}
	return scale, ok && 0 <= scale && scale <= render.MaxScale
}

// octets renders BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.
func octets(f *schemaElement) func([]byte) any {
	if scale, ok := decimalScale(f); ok {
		return func(b []byte) any { return render.DecimalBytes(b, scale) }
	}
	switch f.logical.id {
	case logicalString, logicalEnum, logicalJSON:
		return text
	case logicalUUID:
		return ofLength(16, func(b []byte) any { return render.UUID(b) })
	case logicalFloat16:
		return ofLength(2, func(b []byte) any { return float16(binary.LittleEndian.Uint16(b)) })
	case 0:
		return oldOctets(f)
	}
	return plain
}

func oldOctets(f *schemaElement) func([]byte) any {
	switch f.converted {
	case convertedUTF8, convertedEnum, convertedJSON:
		return text
	case convertedInterval:
		return ofLength(12, func(b []byte) any { return render.Duration(b) })
	}
	return plain
}

func text(b []byte) any { return string(b) }

func plain(b []byte) any { return b }

// ofLength renders values that must have n bytes; others remain bytes.
func ofLength(n int, show func([]byte) any) func([]byte) any {
	return func(b []byte) any {
		if len(b) != n {
			return b
		}
		return show(b)
	}
}

// instant96 renders the timestamps that Impala began with: nanoseconds of the day, and a Julian day.
func instant96(b []byte, c *calendar) any {
	const epoch = 2440588 // the Julian day of 1970-01-01
	nanos := int64(binary.LittleEndian.Uint64(b))
	seconds := (int64(int32(binary.LittleEndian.Uint32(b[8:]))) - epoch) * secondsPerDay
	if c.julian96 {
		whole, rest := divide(nanos, int64(time.Second))
		seconds, nanos = c.instant(seconds+whole), rest
	}
	return time.Unix(seconds, nanos).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// float16 widens an IEEE 754 number of half precision.
func float16(h uint16) float32 {
	sign, exponent, fraction := h>>15, int(h>>10&0x1f), float64(h&0x3ff)
	var f float64
	switch exponent {
	case 0:
		f = math.Ldexp(fraction, -24)
	case 31:
		if f = math.Inf(1); fraction != 0 {
			f = math.NaN()
		}
	default:
		f = math.Ldexp(fraction+1024, exponent-25)
	}
	if sign != 0 {
		f = -f
	}
	return float32(f)
}
