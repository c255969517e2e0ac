package parquet

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io"
	"strings"
	"time"
)

// zoneinfo is lib/time/zoneinfo.zip of the Go distribution. The time zones of the machine are not asked: nodes must make the
// same blocks of a file, whatever is installed where they run.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

// shortIDs are the abbreviations that Spark accepts as zones: java.time.ZoneId.SHORT_IDS. Some are names in the IANA database,
// too, of other zones.
var shortIDs = map[string]string{
	"ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
	"AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
	"CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
	"ECT": "Europe/Paris", //nolint:misspell // a zone
	"EST": "-05:00", "HST": "-10:00", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
	"JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
	"PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
	"SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}

// offsetZone returns the zone of an offset as java.time.ZoneId has it, such as +2, -05:30 or GMT+02:00; nil if name is none.
func offsetZone(name string) *time.Location {
	for _, prefix := range []string{"UTC", "GMT", "UT"} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			name = rest
			break
		}
	}
	if len(name) == 2 { // "+2"
		name = name[:1] + "0" + name[1:]
	}
	for _, layout := range []string{"-07", "-07:00", "-0700", "-07:00:00", "-070000"} {
		if t, err := time.Parse(layout, name); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(name, offset)
		}
	}
	return nil
}

// loadZone returns the time zone of a name in the IANA database, of an abbreviation, or of an offset.
func loadZone(name string) (*time.Location, error) {
	if full, short := shortIDs[name]; short {
		name = full
	}
	if name == "" || name == "Z" {
		return time.UTC, nil
	}
	if zone := offsetZone(name); zone != nil {
		return zone, nil
	}
	archive, err := zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		return nil, err
	}
	f, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // of bytes in memory
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}
