package parquet

import (
	"fmt"
	"time"

	"sequins/internal/render"
)

// Spark before 3.0, and later versions that are set to LEGACY, write days and timestamps before 1582-10-15 by the Julian calendar. What
// a calendar converts keeps its date and time of day as the writer saw them, which is what Spark itself reads. The days of
// timestamps are those of UTC: Spark's are those of the session's zone, as java.util.Calendar has it, which makes a difference of minutes
// before 1900.
type calendar struct {
	julian   bool // dates and timestamps are to be converted
	julian96 bool // timestamps of INT96 are
}

const (
	secondsPerDay  = 24 * 60 * 60
	firstGregorian = -141427 // 1582-10-15, in days since 1970
)

// A sparkMetadata is what Spark notes in a file of the calendar it was written by.
type sparkMetadata struct {
	version             string
	legacy, legacyInt96 bool
}

func (m *sparkMetadata) set(key, value string) {
	switch key {
	case "org.apache.spark.version":
		m.version = value
	case "org.apache.spark.legacyDateTime":
		m.legacy = true
	case "org.apache.spark.legacyINT96":
		m.legacyInt96 = true
	}
}

// calendar returns how the file's times are converted.
func (m *sparkMetadata) calendar() (c calendar) {
	if m.version == "" {
		return c
	}
	var major, minor int
	_, _ = fmt.Sscanf(m.version, "%d.%d", &major, &minor) // another form is of no release
	c.julian = m.legacy || major < 3
	c.julian96 = m.legacyInt96 || major < 3 || major == 3 && minor < 1
	return c
}

// date renders days since 1970.
func (c *calendar) date(n int64) any {
	if c.julian {
		n = gregorian(n)
	}
	return render.Date(n)
}

// timestamp renders a timestamp. One that is no instant is never converted.
func (c *calendar) timestamp(n int64, unit time.Duration, utc bool) any {
	if c.julian && utc {
		perSecond := int64(time.Second / unit)
		seconds, rest := divide(n, perSecond)
		n = gregorianSeconds(seconds)*perSecond + rest
	}
	return render.Timestamp(n, unit, utc)
}

func gregorianSeconds(seconds int64) int64 {
	days, clock := divide(seconds, secondsPerDay)
	return gregorian(days)*secondsPerDay + clock
}

// gregorian returns the day with the Gregorian date that has the same name as the Julian date of a day before 1582-10-15;
// for February 29 of a year that has none, it is March 1. Other days are themselves.
func gregorian(days int64) int64 {
	if days >= firstGregorian {
		return days
	}
	const march4801BC = 2440588 + 32082 // days before 1970, when a leap cycle of four years began
	cycles, c := divide(days+march4801BC, 4*365+1)
	years := (4*c + 3) / 1461
	d := c - 1461*years/4
	months := (5*d + 2) / 153 // since March
	day := d - (153*months+2)/5 + 1
	year := 4*cycles + years - 4800
	return time.Date(int(year), time.Month(months+3), int(day), 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

func divide(n, by int64) (quotient, rest int64) {
	quotient, rest = n/by, n%by
	if rest < 0 {
		quotient, rest = quotient-1, rest+by
	}
	return quotient, rest
}
