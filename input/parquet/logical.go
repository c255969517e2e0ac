package parquet

import (
	"encoding/binary"
	"math"
	"math/big"
	"time"

	"sequins/internal/render"
)

// converter returns what makes values to render of those of a column, with the calendar of its file. A type that does not fit the
// physical one is as if there were none.
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

func integer(f *schemaElement, c *calendar) func(int64) any {
	t := f.logical
	if t.bits() > 0 && (t.bits() <= 32) != (f.physical == physicalInt32) {
		return signed
	}
	switch t.id {
	case logicalDecimal:
		if t.isDecimal() {
			return func(n int64) any { return render.Decimal(big.NewInt(n), int(t.scale)) }
		}
	case logicalDate:
		return c.date
	case logicalTime:
		unit := t.timeUnit()
		return func(n int64) any { return render.TimeOfDay(n, unit) }
	case logicalTimestamp:
		unit := t.timeUnit()
		return func(n int64) any { return c.timestamp(n, unit, t.utc) }
	case logicalInteger:
		if t.width > 0 && t.width <= 64 && !t.signed { // it lies in a signed one of the same bits
			return func(n int64) any { return uint64(n) << (64 - t.width) >> (64 - t.width) }
		}
	}
	return signed
}

func signed(n int64) any { return n }

// octets renders BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.
func octets(f *schemaElement) func([]byte) any {
	t := f.logical
	switch t.id {
	case logicalDecimal:
		if t.isDecimal() {
			return func(b []byte) any { return render.DecimalBytes(b, int(t.scale)) }
		}
	case logicalString, logicalEnum, logicalJSON:
		return text
	case logicalUUID:
		return ofLength(16, func(b []byte) any { return render.UUID(b) })
	case logicalFloat16:
		return ofLength(2, func(b []byte) any { return float16(binary.LittleEndian.Uint16(b)) })
	case logicalInterval:
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
		seconds, nanos = gregorianSeconds(seconds+whole), rest
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
