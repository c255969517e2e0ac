package config

import (
	"fmt"
	"strings"
)

// Rate is a number of bytes per second. A file specifies it as an integer, in MiB/s, or as a string with a unit:
// "200MB/s", "1GiB/s". The /s may be left out.
type Rate int64

// rateUnit is the unit of integers.
const rateUnit = 1 << 20

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
