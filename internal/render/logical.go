package render

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// MaxScale is the maximum scale of a decimal. A larger one, found only in damaged files, would add as many zeros to
// every value.
const MaxScale = 10_000

// Decimal formats unscaled·10^-scale. scale is from 0 to MaxScale.
func Decimal(unscaled *big.Int, scale int) string {
	digits := unscaled.String()
	if scale == 0 {
		return digits
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	return sign + digits[:point] + "." + digits[point:]
}

// DecimalBytes formats a decimal whose unscaled value is in b, big-endian in two's complement. An empty b is 0.
func DecimalBytes(b []byte, scale int) string {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return Decimal(n, scale)
}

// Date formats a number of days since 1970-01-01.
func Date(days int64) string {
	return time.Unix(0, 0).UTC().AddDate(0, 0, int(days)).Format("2006-01-02")
}

// Timestamp formats a number of units since 1970-01-01 00:00: an instant if utc is set, otherwise a local time without
// zone. There are as many decimals as the unit has.
func Timestamp(n int64, unit time.Duration, utc bool) string {
	perSecond := int64(time.Second / unit)
	seconds, rest := n/perSecond, n%perSecond // time.Unix accepts a negative rest
	layout := "2006-01-02T15:04:05.000000000"[:len("2006-01-02T15:04:05.")+decimals(unit)]
	if utc {
		layout += "Z"
	}
	return time.Unix(seconds, rest*int64(unit)).UTC().Format(layout)
}

// TimeOfDay formats a number of units since midnight. Times outside of the day are shown as they are: "24:00:00.000",
// "-00:00:01.000".
func TimeOfDay(n int64, unit time.Duration) string {
	sign, units := "", uint64(n)
	if n < 0 {
		sign, units = "-", -units
	}
	perSecond := uint64(time.Second / unit)
	seconds := units / perSecond
	return fmt.Sprintf("%s%02d:%02d:%02d.%0*d", sign, seconds/3600, seconds/60%60, seconds%60, decimals(unit), units%perSecond)
}

// decimals returns how many decimals a second has in a unit: 3, 6 or 9.
func decimals(unit time.Duration) int {
	switch unit {
	case time.Millisecond:
		return 3
	case time.Microsecond:
		return 6
	}
	return 9
}

// UUID formats 16 bytes as a UUID.
func UUID(b []byte) string {
	h := hex.EncodeToString(b[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Duration formats 12 bytes, little-endian numbers of months, days and milliseconds, in ISO 8601: P1M2DT3.004S.
func Duration(b []byte) string {
	months, days, ms := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	return fmt.Sprintf("P%dM%dDT%d.%03dS", months, days, ms/1000, ms%1000)
}
