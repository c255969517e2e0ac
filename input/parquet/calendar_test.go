package parquet

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"sequins/internal/render"
	"sequins/test/expect"
)

// The expected instants are those that Spark 3.5.6 reads in files written with datetimeRebaseModeInWrite=LEGACY by a session in UTC.
func TestCalendar(t *testing.T) {
	tests := []struct{ written, want string }{
		{"1512-07-10T13:03:38.821008Z", "1512-06-30T13:03:38.821008Z"},
		{"1582-10-15T00:00:00Z", "1582-10-15T00:00:00.000000Z"},
		{"1582-10-14T23:59:59.999999Z", "1582-10-04T23:59:59.999999Z"},
		{"1900-01-01T00:00:00Z", "1900-01-01T00:00:00.000000Z"},
	}
	for _, tt := range tests {
		at, err := time.Parse(time.RFC3339, tt.written)
		expect.NoError(t, err)
		m := sparkMetadata{version: "2.4.8"}
		c := m.calendar()
		for show, n := range map[*schemaElement]int64{
			{physical: physicalInt64, logical: logicalType{id: logicalTimestamp, unit: 2, utc: true}}: at.UnixMicro(),
			{physical: physicalInt64, logical: logicalType{}.orConverted(10, 0)}:                      at.UnixMicro(),
		} {
			convert := converter(show, &c)
			if got := convert(&value{bits: uint64(n)}); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.written, got, tt.want)
			}
		}
		b := binary.LittleEndian.AppendUint64(nil, uint64(at.Sub(at.Truncate(24*time.Hour))))
		days, _ := divide(at.Unix(), secondsPerDay)
		b = binary.LittleEndian.AppendUint32(b, uint32(days+2440588))
		if got, want := instant96(b, &c), strings.TrimSuffix(tt.want, "Z")+"000Z"; got != want {
			t.Errorf("%s as INT96: %s, want %s", tt.written, got, want)
		}
	}
}

// Dates are converted by their name, at any distance.
func TestGregorian(t *testing.T) {
	for days, want := range map[int64]string{
		-141427: "1582-10-15", -141428: "1582-10-04", -719164: "0001-01-01", -354220: "1000-03-01", -354221: "1000-03-01", -354222: "1000-02-28",
		0: "1970-01-01",
	} {
		if got := render.Date(gregorian(days)); got != want {
			t.Errorf("%d: %s, want %s", days, got, want)
		}
	}
	for _, days := range []int64{math.MinInt32, math.MinInt64 / secondsPerDay, math.MaxInt64} {
		gregorian(days) // does not panic
	}
}

// Which files are converted depends on what Spark notes in them.
func TestSparkMetadata(t *testing.T) {
	type notes = map[string]string
	const spark = "org.apache.spark."
	for _, tt := range []struct {
		notes            notes
		julian, julian96 bool
	}{
		{notes{}, false, false},
		{notes{spark + "legacyDateTime": ""}, false, false}, // not written by Spark
		{notes{spark + "version": "2.4.8"}, true, true},
		{notes{spark + "version": "3.0.3"}, false, true},
		{notes{spark + "version": "3.5.6"}, false, false},
		{notes{spark + "version": "4.0.0"}, false, false},
		{notes{spark + "version": "3.5.6", spark + "legacyDateTime": "", spark + "timeZone": "UTC"}, true, false},
		{notes{spark + "version": "3.5.6", spark + "legacyINT96": ""}, false, true},
	} {
		var keys []string
		for k := range tt.notes {
			keys = append(keys, k)
		}
		w := thriftWriter{}
		w.structure(0, func() {
			w.number(1, thriftI32, 1)
			w.list(2, thriftStruct, 0, nil)
			w.number(3, thriftI64, 0)
			w.list(4, thriftStruct, 0, nil)
			w.list(5, thriftStruct, len(keys), func(i int) {
				w.structure(0, func() {
					w.bytes(1, keys[i])
					w.bytes(2, tt.notes[keys[i]])
				})
			})
		})
		f, err := parseFooter(w.b)
		expect.NoError(t, err)
		if c := f.spark.calendar(); c.julian != tt.julian || c.julian96 != tt.julian96 {
			t.Errorf("%v: %v, %v, want %v, %v", tt.notes, c.julian, c.julian96, tt.julian, tt.julian96)
		}
	}
}
