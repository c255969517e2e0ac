package parquet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A legacy timestamp has the same value wherever it is read, whatever zones the machine has.
func TestZonesAreNotTheMachines(t *testing.T) {
	const role = "SEQUINS_TEST_ZONE"
	m := sparkMetadata{version: "2.4.8", zone: "Europe/Amsterdam"}
	c := m.calendar()
	value := c.timestamp(-3e12, time.Millisecond, true)
	if os.Getenv(role) != "" {
		t.Logf("value=%v", value)
		return
	}
	archive := t.TempDir()
	if err := os.Mkdir(filepath.Join(archive, "Europe"), 0o755); err != nil {
		t.Fatal(err)
	}
	utc := []byte("TZif2" + strings.Repeat("\x00", 15) + strings.Repeat("\x00", 12) + "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00UTC\x00")
	if _, err := time.LoadLocationFromTZData("x", append(utc, append(utc, "\nUTC0\n"...)...)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(archive, "Europe/Amsterdam"), append(utc, append(utc, "\nUTC0\n"...)...), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", t.Name(), "-test.v")
	cmd.Env = append(os.Environ(), role+"=1", "ZONEINFO="+archive)
	out, err := cmd.CombinedOutput()
	_, got, _ := strings.Cut(string(out), "value=")
	got, _, _ = strings.Cut(got, "\n")
	if err != nil || got != value {
		t.Errorf("with another database of zones: %q, %v; want %v\n%s", got, err, value, out)
	}
	for _, name := range []string{"Local", "../x", "/etc/localtime", "Europe", "nowhere"} {
		if zone, err := loadZone(name); err == nil {
			t.Errorf("%q is the zone %v", name, zone)
		}
	}
}

// The zones of Spark's sessions are those of java.time.ZoneId.of(name, SHORT_IDS). The values are Spark's own
// (rebaseJulianToGregorianMicros).
func TestZonesOfSpark(t *testing.T) {
	const year1874, october15 = -3_000_000_000, -12_219_292_800
	for _, tt := range []struct {
		zone    string
		seconds int64
		want    string
	}{
		{"PST", year1874, "1874-12-07T18:32:58.000000Z"}, {"America/Los_Angeles", year1874, "1874-12-07T18:32:58.000000Z"},
		{"EST", year1874, "1874-12-07T18:40:00.000000Z"}, {"MST", year1874, "1874-12-07T18:40:00.000000Z"}, {"Z", year1874, "1874-12-07T18:40:00.000000Z"},
		{"UTC", october15 - 3600, "1582-10-04T23:00:00.000000Z"}, {"+02:00", october15 - 3600, "1582-10-14T23:00:00.000000Z"},
		{"GMT+02:00", october15 - 3600, "1582-10-14T23:00:00.000000Z"}, {"UTC+2", october15 - 3600, "1582-10-14T23:00:00.000000Z"},
		{"+0200", october15 - 3600, "1582-10-14T23:00:00.000000Z"}, {"+02:00:00", october15 - 3600, "1582-10-14T23:00:00.000000Z"},
		{"-02:00", october15 - 3600, "1582-10-04T23:00:00.000000Z"},
	} {
		m := sparkMetadata{version: "3.5.6", legacy: true, zone: tt.zone}
		c := m.calendar()
		if got := c.timestamp(tt.seconds*1e6, time.Microsecond, true); got != tt.want {
			t.Errorf("%d in %s: %v, want %s", tt.seconds, tt.zone, got, tt.want)
		}
	}
	for short := range shortIDs {
		if _, err := loadZone(short); err != nil {
			t.Errorf("%s: %v", short, err)
		}
	}
}
