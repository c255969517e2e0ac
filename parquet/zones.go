package parquet

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io"
	"time"
)

// zoneinfo is lib/time/zoneinfo.zip of the Go distribution. The time zones of the machine are not asked: nodes must make the
// same blocks of a file, whatever is installed where they run.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

// loadZone returns the time zone of a name in the IANA database.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
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
