package avro

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"sequins/internal/render"
)

// reader reads a scalar value for render. Strings and bytes are those of the stream.
type reader func(s *stream) any

// scalar returns the type of a scalar kind, or nil if it is not one. Of node it takes the size of a fixed, the symbols of an
// enum, and the logical type. A logical type that does not fit its base, or is invalid, is ignored, as the specification says.
func scalar(kind string, node map[string]any) (t *typ, err error) {
	t = &typ{kind: kind}
	logical, _ := node["logicalType"].(string)
	switch kind {
	case "null":
		t.read = func(*stream) any { return nil }
	case "boolean":
		t.read = readBoolean
	case "float":
		t.read = readFloat
	case "double":
		t.read = readDouble
	case "string":
		t.read = func(s *stream) any { return render.Text(s.take(s.length())) }
	case "int", "long":
		t.read = numberReader(kind, logical)
	case "bytes":
		show := plainBytes
		if logical == "decimal" {
			show, err = showDecimal(node, math.MaxInt32)
		}
		t.read = func(s *stream) any { return show(s, s.take(s.length())) }
	case "enum":
		t.read, err = enumReader(node)
	case "fixed":
		t.read, err = fixedReader(logical, node)
	default:
		return nil, nil
	}
	return t, err
}

func readBoolean(s *stream) any {
	b := s.take(1)
	if b != nil && b[0] > 1 {
		s.fail(errors.New("a boolean that is neither true nor false"))
	}
	return b != nil && b[0] == 1
}

func readFloat(s *stream) any {
	if b := s.take(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return nil
}

func readDouble(s *stream) any {
	if b := s.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return nil
}

func enumReader(node map[string]any) (reader, error) {
	list, ok := node["symbols"].([]any)
	symbols := make([]string, len(list))
	for i := range list {
		if symbols[i], ok = list[i].(string); !ok {
			break
		}
	}
	if !ok {
		return nil, fmt.Errorf("the enum %.100q in the schema has no list of symbols", node["name"])
	}
	return func(s *stream) any {
		n := s.int()
		if s.err != nil || n < 0 || n >= int64(len(symbols)) {
			s.fail(fmt.Errorf("symbol %d of an enum of %d", n, len(symbols)))
			return nil
		}
		return symbols[n]
	}, nil
}

// logicalNumbers render numbers, by kind and logical type. Others are plain.
var logicalNumbers = map[[2]string]func(int64) any{
	{"int", "date"}:                    func(n int64) any { return render.Date(n) },
	{"int", "time-millis"}:             timeOfDay(time.Millisecond),
	{"long", "time-micros"}:            timeOfDay(time.Microsecond),
	{"long", "timestamp-millis"}:       timestamp(time.Millisecond, true),
	{"long", "timestamp-micros"}:       timestamp(time.Microsecond, true),
	{"long", "timestamp-nanos"}:        timestamp(time.Nanosecond, true),
	{"long", "local-timestamp-millis"}: timestamp(time.Millisecond, false),
	{"long", "local-timestamp-micros"}: timestamp(time.Microsecond, false),
	{"long", "local-timestamp-nanos"}:  timestamp(time.Nanosecond, false),
}

func numberReader(kind, logical string) reader {
	read, show := (*stream).long, logicalNumbers[[2]string{kind, logical}]
	if kind == "int" {
		read = (*stream).int
	}
	if show == nil {
		return func(s *stream) any { return read(s) }
	}
	return func(s *stream) any { return show(read(s)) }
}

func timestamp(unit time.Duration, utc bool) func(int64) any {
	return func(n int64) any { return render.Timestamp(n, unit, utc) }
}

func timeOfDay(unit time.Duration) func(int64) any {
	return func(n int64) any { return render.TimeOfDay(n, unit) }
}

// maxDecimal is the maximum length of a decimal, in bytes: rendering takes more than linear time.
const maxDecimal = 4 << 10

func plainBytes(_ *stream, b []byte) any { return b }

func showDecimal(node map[string]any, most float64) (func(*stream, []byte) any, error) {
	precision, ok := integer(node["precision"])
	scale, scaled := integer(node["scale"])
	if _, found := node["scale"]; !found {
		scaled = true // of 0
	}
	switch {
	case !ok || !scaled || precision <= 0 || float64(precision) > most || scale < 0 || scale > precision:
		return plainBytes, nil
	case scale > render.MaxScale:
		return nil, fmt.Errorf("the schema has a decimal of %d decimal places, over %d", scale, render.MaxScale)
	}
	return func(s *stream, b []byte) any {
		if len(b) > maxDecimal {
			s.fail(fmt.Errorf("a decimal of %d bytes, over %d", len(b), maxDecimal))
			return nil
		}
		return render.DecimalBytes(b, scale)
	}, nil
}

func fixedReader(logical string, node map[string]any) (reader, error) {
	size, ok := integer(node["size"])
	if !ok || size < 0 {
		return nil, fmt.Errorf("the size of the fixed %.100q in the schema is not a number of bytes", node["name"])
	}
	show, err := plainBytes, error(nil)
	switch {
	case logical == "decimal":
		show, err = showDecimal(node, math.Floor(math.Log10(2)*(8*float64(size)-1)))
	case logical == "uuid" && size == 16:
		show = func(s *stream, b []byte) any { return whole(s, b, size, render.UUID) }
	case logical == "duration" && size == 12:
		show = func(s *stream, b []byte) any { return whole(s, b, size, render.Duration) }
	}
	return func(s *stream) any { return show(s, s.take(int64(size))) }, err
}

// integer returns an attribute of a schema that is an integer of 32 bits, as Java's reader takes them.
func integer(attribute any) (n int, ok bool) {
	number, ok := attribute.(json.Number)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(number.String(), 10, 32)
	return int(v), err == nil
}

// whole renders bytes if they are all there.
func whole(s *stream, b []byte, size int, show func([]byte) string) any {
	if s.err != nil || len(b) != size {
		return nil
	}
	return show(b)
}
