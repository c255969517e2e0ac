package render

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		v          any
		text, json string
	}{
		{nil, "", "null"},
		{true, "true", "true"},
		{int64(math.MinInt64), "-9223372036854775808", "-9223372036854775808"},
		{uint64(math.MaxUint64), "18446744073709551615", "18446744073709551615"},
		{float32(0.1), "0.1", "0.1"},
		{1e21, "1e+21", "1e+21"},
		{-0.0000005, "-5e-07", "-5e-07"},
		{123456789.5, "123456789.5", "123456789.5"},
		{math.NaN(), "NaN", `"NaN"`},
		{float32(math.Inf(-1)), "-Infinity", `"-Infinity"`},
		{math.Inf(1), "Infinity", `"Infinity"`},
		{"a\"\\\n\r\t\x01é\xff<", "a\"\\\n\r\t\x01é\xff<", `"a\"\\\n\r\t\u0001é` + "\ufffd" + `<"`},
		{Text("a\"\n\xffé\xe2\x82"), "a\"\n\xffé\xe2\x82", `"a\"\n` + "\ufffd" + `é` + "\ufffd\ufffd" + `"`},
		{[]byte{0xff, 0}, "\xff\x00", `"/wA="`},
	}
	for _, tt := range tests {
		if got := string(AppendText([]byte(">"), tt.v)); got != ">"+tt.text {
			t.Errorf("text of %#v: %q, want %q", tt.v, got, tt.text)
		}
		got := string(AppendJSON([]byte(">"), tt.v))
		if got != ">"+tt.json {
			t.Errorf("JSON of %#v: %s, want %s", tt.v, got, tt.json)
		}
		if !json.Valid([]byte(got[1:])) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func TestLogical(t *testing.T) {
	huge, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	tests := map[string]string{
		Decimal(big.NewInt(0), 0):                            "0",
		Decimal(big.NewInt(0), 2):                            "0.00",
		Decimal(big.NewInt(-5), 2):                           "-0.05",
		Decimal(big.NewInt(1250), 2):                         "12.50",
		Decimal(huge, 10):                                    "-12345678901234567890.1234567890",
		DecimalBytes(nil, 1):                                 "0.0",
		DecimalBytes([]byte{0xff}, 0):                        "-1",
		DecimalBytes([]byte{0x80, 0}, 3):                     "-32.768",
		DecimalBytes([]byte{0, 0xff}, 0):                     "255",
		Date(0):                                              "1970-01-01",
		Date(-719162):                                        "0001-01-01",
		Date(19723):                                          "2024-01-01",
		Timestamp(-1, time.Millisecond, true):                "1969-12-31T23:59:59.999Z",
		Timestamp(1_700_000_000_000, time.Millisecond, true): "2023-11-14T22:13:20.000Z",
		Timestamp(1_700_000_000_500_000, time.Microsecond, false):                        "2023-11-14T22:13:20.500000",
		Timestamp(math.MaxInt64, time.Nanosecond, true):                                  "2262-04-11T23:47:16.854775807Z",
		Timestamp(0, time.Nanosecond, false):                                             "1970-01-01T00:00:00.000000000",
		TimeOfDay(45_000_250, time.Millisecond):                                          "12:30:00.250",
		TimeOfDay(1, time.Nanosecond):                                                    "00:00:00.000000001",
		TimeOfDay(24*60*60*1e6, time.Microsecond):                                        "24:00:00.000000",
		TimeOfDay(25*60*60*1000+1, time.Millisecond):                                     "25:00:00.001",
		TimeOfDay(-1, time.Millisecond):                                                  "-00:00:00.001",
		TimeOfDay(math.MinInt64, time.Nanosecond):                                        "-2562047:47:16.854775808",
		UUID([]byte("\xf8\x1d\x4f\xae\x7d\xec\x11\xd0\xa7\x65\x00\xa0\xc9\x1e\x6b\xf6")): "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		Duration([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0xbc, 0x0b, 0, 0}):                       "P1M2DT3.004S",
	}
	for got, want := range tests {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// names is a tree of fields.
type names map[string]names

func (n names) Named(name string) []Name {
	if c, ok := n[name]; ok {
		return []Name{c}
	}
	return nil
}

func TestLookup(t *testing.T) {
	in := names{"a": {"b": {"c": nil}}, "a.b": {"d": nil}, "x": nil}
	for path, want := range map[string]string{
		"x": "x", "a": "a", "a.b": "", "a.b.c": "a|b|c", "a.b.d": "a.b|d",
		"": "", "y": "", "x.y": "", "a.b.e": "", ".x": "", "x.": "",
	} {
		found, err := lookup(in, path)
		if got := strings.Join(found.Path, "|"); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", path, got, err, want)
		}
	}
}

// Keys that are timestamps or times of a day sort as these do.
func TestTimesSort(t *testing.T) {
	for _, unit := range []time.Duration{time.Millisecond, time.Microsecond, time.Nanosecond} {
		second := int64(time.Second / unit)
		times := []int64{0, 1, second / 2, second - 1, second, second + 1, 20 * second, 20*second + second/2, 3600 * second, 24*3600*second - 1, 24 * 3600 * second}
		for i, n := range times[1:] {
			if a, b := TimeOfDay(times[i], unit), TimeOfDay(n, unit); a >= b {
				t.Errorf("%s is not less than %s", a, b)
			}
			for _, from := range []int64{-60_000_000 * second, 0, 1_700_000_000 * second} {
				if a, b := Timestamp(from+times[i], unit, true), Timestamp(from+n, unit, true); a >= b {
					t.Errorf("%s is not less than %s", a, b)
				}
			}
		}
	}
}
