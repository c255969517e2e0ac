// Package human formats counts, sizes and durations for people: on the status page and in the output of commands.
// Output for programs (JSON, metrics, logs) uses plain numbers.
package human

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count formats 1234567 as 1,234,567.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural formats a number of things: "1 file", "2 files".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Size formats bytes in powers of 1024 with one decimal: "1.5 KiB".
func Size(n int64) string {
	const units = "KMGTP"
	f, i := float64(n), -1
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i < 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// Duration formats d in its largest units, rounded down: "59 s", "1 h 30 min", "4 days". A negative duration, from
// clocks that differ, is "0 s".
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Took formats the time that something has taken, in two units: "52 ms", "4.2 s", "2 min 42 s", "1 h 30 min".
func Took(d time.Duration) string {
	switch {
	case d < time.Minute:
		return Latency(d)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return Duration(d)
}

const maxRanges = 12

// Ranges formats ascending numbers: "0-1, 4", and at most 12 ranges.
func Ranges(list []int) string { return RangesUpTo(list, maxRanges) }

// RangesUpTo formats ascending numbers like Ranges, and at most most ranges.
func RangesUpTo(list []int, most int) string {
	var runs []string
	for i := 0; i < len(list); i++ {
		if len(runs) == most {
			runs = append(runs, "…")
			break
		}
		from := list[i]
		for i+1 < len(list) && list[i+1] == list[i]+1 {
			i++
		}
		run := strconv.Itoa(from)
		if list[i] > from {
			run += "-" + strconv.Itoa(list[i])
		}
		runs = append(runs, run)
	}
	return strings.Join(runs, ", ")
}

// Latency formats a time within which something was answered, in two or three digits: "12 µs", "1.2 ms", "3.0 s".
func Latency(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(max(d, 0))/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// Rate formats a number per second: "0", "0.5", "1,234".
func Rate(perSecond float64) string {
	switch {
	case perSecond <= 0:
		return "0"
	case perSecond < 10:
		return strconv.FormatFloat(max(perSecond, .1), 'f', 1, 64)
	}
	return Count(int64(perSecond + .5))
}

// maxNames is the number of names that Some shows.
const maxNames = 5

// Some lists the first of several names: "a, b, c, d, e and 3 more".
func Some(names []string) string { return SomeUpTo(names, maxNames) }

// SomeUpTo lists names like Some, and at most most of them.
func SomeUpTo(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
