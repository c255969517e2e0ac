package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. A file specifies it as an integer or as a string with a unit: powers of
// 1000 (B, KB, MB, GB, TB) or of 1024 (KiB, MiB, GiB, TiB).
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	// In descending order, for String; a unit precedes its suffixes, for ParseSize.
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// ParseSize parses an integer with an optional unit, ignoring case: "256MiB", "64 mb", "4096".
func ParseSize(s string) (Size, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range sizeUnits {
		if cut := len(number) - len(u.name); cut > 0 && strings.EqualFold(number[cut:], u.name) {
			number, unit = strings.TrimSpace(number[:cut]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as \"256MiB\"", s)
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, fmt.Errorf("%q is more than an int64 holds", s)
	}
	return Size(n * unit), nil
}

// String formats the size with the largest 1024-based unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// Rate is a number of bytes per second. A file specifies it as an integer, in MiB/s, or as a string with a unit:
// "200MB/s", "1GiB/s". The /s may be left out.
type Rate int64

// ParseRate parses a size per second; a number without a unit is one of MiB/s.
func ParseRate(s string) (Rate, error) {
	number := strings.TrimSuffix(strings.TrimSpace(s), "/s")
	if n := strings.TrimSpace(number); n != "" && strings.Trim(n, "-0123456789") == "" {
		number += "MiB"
	}
	v, err := ParseSize(number)
	if err != nil {
		return 0, fmt.Errorf("%q is not a rate such as \"50MiB/s\"", s)
	}
	return Rate(v), nil
}

// String formats the rate with the largest 1024-based unit that divides it.
func (r Rate) String() string { return Size(r).String() + "/s" }
