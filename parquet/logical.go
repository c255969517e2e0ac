package parquet

import (
	"encoding/binary"
	"math"
	"math/big"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"sequins/internal/render"
)

// converter says how the values of a column are rendered.
func converter(f *format.SchemaElement) func(parquet.Value) any {
	switch f.Type.V {
	case format.Boolean:
		return func(v parquet.Value) any { return v.Boolean() }
	case format.Int32:
		show := integer(f)
		return func(v parquet.Value) any { return show(int64(v.Int32())) }
	case format.Int64:
		show := integer(f)
		return func(v parquet.Value) any { return show(v.Int64()) }
	case format.Int96:
		return func(v parquet.Value) any { return instant96(v.Int96()) }
	case format.Float:
		return func(v parquet.Value) any { return v.Float() }
	case format.Double:
		return func(v parquet.Value) any { return v.Double() }
	}
	show := octets(f)
	return func(v parquet.Value) any { return show(v.ByteArray()) }
}

// integer renders INT32 and INT64.
func integer(f *format.SchemaElement) func(int64) any {
	if scale, ok := decimalScale(f); ok {
		return func(n int64) any { return render.Decimal(big.NewInt(n), scale) }
	}
	switch t := f.LogicalType.Value.(type) {
	case *format.DateType:
		return date
	case *format.TimeType:
		return timeOfDay(unit(t.Unit))
	case *format.TimestampType:
		return timestamp(unit(t.Unit), t.IsAdjustedToUTC)
	case *format.IntType:
		return sized(t.BitWidth, t.IsSigned)
	case nil:
		return oldInteger(f)
	}
	return signed
}

// oldInteger renders by the types of files from before 2018.
func oldInteger(f *format.SchemaElement) func(int64) any {
	if !f.ConvertedType.Valid {
		return signed
	}
	switch f.ConvertedType.V {
	case deprecated.Date:
		return date
	case deprecated.TimeMillis:
		return timeOfDay(time.Millisecond)
	case deprecated.TimeMicros:
		return timeOfDay(time.Microsecond)
	case deprecated.TimestampMillis:
		return timestamp(time.Millisecond, true)
	case deprecated.TimestampMicros:
		return timestamp(time.Microsecond, true)
	case deprecated.Uint8:
		return sized(8, false)
	case deprecated.Uint16:
		return sized(16, false)
	case deprecated.Uint32:
		return sized(32, false)
	case deprecated.Uint64:
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
func sized(width int8, isSigned bool) func(int64) any {
	if isSigned || width <= 0 || width > 64 {
		return signed
	}
	return func(n int64) any { return uint64(n) << (64 - width) >> (64 - width) }
}

func unit(u format.TimeUnit) time.Duration {
	if u.Value == nil {
		return time.Millisecond
	}
	return u.Value.Duration()
}

// decimalScale reports whether a column has decimals, and how many digits are behind the point.
func decimalScale(f *format.SchemaElement) (scale int, ok bool) {
	switch t := f.LogicalType.Value.(type) {
	case *format.DecimalType:
		scale, ok = int(t.Scale), true
	case nil:
		scale, ok = int(f.Scale.V), f.ConvertedType.Valid && f.ConvertedType.V == deprecated.Decimal
	}
	return scale, ok && 0 <= scale && scale <= render.MaxScale
}

// octets renders BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.
func octets(f *format.SchemaElement) func([]byte) any {
	if scale, ok := decimalScale(f); ok {
		return func(b []byte) any { return render.DecimalBytes(b, scale) }
	}
	switch f.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return text
	case *format.UUIDType:
		return ofLength(16, func(b []byte) any { return render.UUID(b) })
	case *format.Float16Type:
		return ofLength(2, func(b []byte) any { return float16(binary.LittleEndian.Uint16(b)) })
	case nil:
		return oldOctets(f)
	}
	return plain
}

func oldOctets(f *format.SchemaElement) func([]byte) any {
	if !f.ConvertedType.Valid {
		return plain
	}
	switch f.ConvertedType.V {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json:
		return text
	case deprecated.Interval:
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
func instant96(v deprecated.Int96) any {
	const epoch = 2440588 // the Julian day of 1970-01-01
	const day = 24 * 60 * 60
	nanos := int64(uint64(v[1])<<32 | uint64(v[0]))
	seconds := (int64(int32(v[2])) - epoch) * day
	return time.Unix(seconds, nanos).UTC().Format("2006-01-02T15:04:05.999999999Z")
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
