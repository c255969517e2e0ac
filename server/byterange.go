package server

import (
	"strconv"
	"strings"
)

// byteRange returns a Range field in a form for http.ServeContent, or "" if it must be ignored: if its unit
// is not bytes, if it is malformed, or if it has several ranges. http.ServeContent would answer some of these
// with 416, which is meant for valid ranges beyond the end of the value.
func byteRange(field string) string {
	unit, set, ok := strings.Cut(field, "=")
	first, last, isRange := strings.Cut(strings.Trim(set, " \t"), "-")
	if !ok || !isRange || !strings.EqualFold(unit, "bytes") {
		return ""
	}
	from, hasFirst, ok1 := position(first)
	to, hasLast, ok2 := position(last)
	switch {
	case !ok1 || !ok2 || !hasFirst && !hasLast || hasFirst && hasLast && less(last, first):
		return ""
	case !hasFirst && to == 0: // the last 0 bytes: not satisfiable
		return "bytes=" + strconv.FormatInt(maxPosition, 10) + "-"
	case !hasFirst:
		return "bytes=-" + strconv.FormatInt(to, 10)
	case !hasLast:
		return "bytes=" + strconv.FormatInt(from, 10) + "-"
	}
	return "bytes=" + strconv.FormatInt(from, 10) + "-" + strconv.FormatInt(to, 10)
}

// less compares decimal numbers of any length.
func less(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return len(a) < len(b) || len(a) == len(b) && a < b
}

// maxPosition is beyond the end of every value.
const maxPosition = 1 << 62

// position parses a position of a range, which may be empty. Larger positions become maxPosition.
func position(digits string) (n int64, there, ok bool) {
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		if n > (maxPosition-9)/10 {
			n = maxPosition
		} else {
			n = 10*n + int64(c-'0')
		}
	}
	return n, digits != "", true
}
