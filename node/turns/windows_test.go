package turns_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sequins/node/turns"
	"sequins/test/expect"
)

func parse(t *testing.T, text string) turns.Windows {
	t.Helper()
	w, err := turns.ParseWindows(text)
	expect.NoError(t, err)
	return w
}

func TestParseWindows(t *testing.T) {
	for _, text := range []string{"", " ", "22:00-06:00", "00:00-24:00", "01:00-02:00, 22:30-24:00", "22:00-06:00 Europe/Paris",
		"01:00-02:00,03:00-04:00  UTC", "22:00-06:00 Local"} {
		if w, err := turns.ParseWindows(text); err != nil || w.String() != strings.TrimSpace(text) {
			t.Errorf("%q: %v, %v", text, w, err)
		}
	}
	for text, want := range map[string]string{
		"22:00":                               `has "22:00", which is not a window such as 22:00-06:00`,
		"22-06":                               "not a window",
		"1:00-02:00":                          "not a window",
		"+1:00-02:00":                         "not a window",
		"01:60-02:00":                         "not a window",
		"24:00-02:00":                         "from 00:00 to 24:00",
		"23:00-24:01":                         "not a window",
		"01:00-02:00,":                        "not a window",
		"22:00-22:00":                         `has "22:00-22:00", which is empty; 00:00-24:00 is a whole day`,
		"22:00-06:00 Paris":                   `has the time zone "Paris", which is not known`,
		"22:00-06:00 ../etc/passwd":           "time zone",
		"01:00-02:00 UTC, 03:00-04:00":        `has the zone "UTC" before its end`,
		strings.Repeat("01:00-02:00,", 2_000): "longer than",
	} {
		if _, err := turns.ParseWindows(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// Each case is a time and when the windows are open next, "" for at once.
func TestNext(t *testing.T) {
	const night, paris = "22:00-06:00 UTC", " Europe/Paris"
	for _, c := range []struct{ windows, at, want string }{
		{"", "2026-01-01T12:00:00Z", ""},
		{"00:00-24:00 UTC", "2026-01-01T12:00:00Z", ""},
		{"00:00-24:00 UTC", "2026-01-01T00:00:00Z", ""},
		{night, "2026-01-01T21:59:59Z", "2026-01-01T22:00:00Z"},
		{night, "2026-01-01T22:00:00Z", ""},
		{night, "2026-01-01T00:00:00Z", ""},
		{night, "2026-01-01T05:59:59Z", ""},
		{night, "2026-01-01T06:00:00Z", "2026-01-01T22:00:00Z"},
		{night, "2025-12-31T23:30:00Z", ""},
		{"12:00-13:00, 03:00-04:00 UTC", "2026-01-01T13:00:00Z", "2026-01-02T03:00:00Z"},
		{"12:00-13:00, 03:00-04:00 UTC", "2026-01-01T04:00:00Z", "2026-01-01T12:00:00Z"},
		{"22:00-06:00" + paris, "2026-01-01T12:00:00Z", "2026-01-01T21:00:00Z"},
		{"22:00-06:00" + paris, "2026-07-01T12:00:00Z", "2026-07-01T20:00:00Z"},
		{"22:00-06:00 Asia/Kathmandu", "2026-01-01T12:00:00Z", "2026-01-01T16:15:00Z"},
		{"22:00-06:00 Pacific/Kiritimati", "2026-01-01T12:00:00Z", ""}, // 02:00 of the next day

		// On 2026-03-29 at 01:00 UTC the clock goes from 02:00 to 03:00.
		{"22:00-06:00" + paris, "2026-03-29T03:59:59Z", ""},
		{"22:00-06:00" + paris, "2026-03-29T04:00:00Z", "2026-03-29T20:00:00Z"},
		{"02:15-02:45" + paris, "2026-03-29T00:59:59Z", "2026-03-30T00:15:00Z"},
		{"02:30-03:15" + paris, "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		{"02:30-03:15" + paris, "2026-03-29T01:15:00Z", "2026-03-30T00:30:00Z"},
		{"01:00-02:30" + paris, "2026-03-29T00:59:59Z", ""},
		{"01:00-02:30" + paris, "2026-03-29T01:00:00Z", "2026-03-29T23:00:00Z"},

		// On 2026-10-25 at 01:00 UTC the clock goes from 03:00 to 02:00.
		{"02:15-02:45" + paris, "2026-10-25T00:14:59Z", "2026-10-25T00:15:00Z"},
		{"02:15-02:45" + paris, "2026-10-25T00:45:00Z", "2026-10-25T01:15:00Z"},
		{"02:30-04:00" + paris, "2026-10-25T00:30:00Z", ""},
		{"02:30-04:00" + paris, "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"},
		{"02:30-04:00" + paris, "2026-10-25T03:00:00Z", "2026-10-26T01:30:00Z"},
		{"22:00-06:00" + paris, "2026-10-25T04:59:59Z", ""},
		{"22:00-06:00" + paris, "2026-10-25T05:00:00Z", "2026-10-25T21:00:00Z"},
		{"00:00-24:00" + paris, "2026-10-25T22:59:59Z", ""},

		// Samoa had no 2011-12-30, which began at 10:00 UTC.
		{"22:00-23:00 Pacific/Apia", "2011-12-30T09:30:00Z", "2011-12-31T08:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		expect.NoError(t, err)
		got := ""
		if next := parse(t, c.windows).Next(at); !next.Equal(at) {
			got = next.UTC().Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%s at %s: next %q, want %q", c.windows, c.at, got, c.want)
		}
	}
}

// On days on which the clock is not changed, windows are open exactly when the clock shows a time within one.
func TestNextShowsTheClock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		zone := []string{"UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}[r.IntN(5)]
		loc, err := time.LoadLocation(zone)
		expect.NoError(t, err)
		var text []string
		var minutes [24 * 60]bool
		for range 1 + r.IntN(3) {
			begin := r.IntN(24 * 60)
			end := (begin + 1 + r.IntN(24*60-1)) % (24 * 60)
			text = append(text, fmt.Sprintf("%02d:%02d-%02d:%02d", begin/60, begin%60, end/60, end%60))
			for m := begin; m != end; m = (m + 1) % (24 * 60) {
				minutes[m] = true
			}
		}
		w := parse(t, strings.Join(text, ",")+" "+zone)
		at := time.Date(2026, time.June, 1+r.IntN(30), 0, 0, r.IntN(24*60*60), 0, loc)
		if h, m, _ := at.Clock(); w.Next(at).Equal(at) != minutes[h*60+m] {
			t.Fatalf("%s at %s: open is %v", w, at, !minutes[h*60+m])
		}
		checkNext(t, w, at)
	}
}

// checkNext checks that windows that are closed open at Next, and not before.
func checkNext(t *testing.T, w turns.Windows, at time.Time) {
	t.Helper()
	next := w.Next(at)
	if next.Before(at) || next.Sub(at) > 50*time.Hour {
		t.Fatalf("%s at %s: next %s", w, at, next)
	}
	if !w.Next(next).Equal(next) {
		t.Fatalf("%s at %s: closed at its beginning, %s", w, at, next)
	}
	for before := at; before.Before(next); before = before.Add(617 * time.Minute) {
		if !w.Next(before).Equal(next) {
			t.Fatalf("%s at %s: next %s, and at %s %s", w, at, next, before, w.Next(before))
		}
	}
}

// Every window opens on every day of a year, but for the day on which the clock skips it and the one on which it shows it twice.
func TestEveryDay(t *testing.T) {
	for _, zone := range []string{"Europe/Paris", "Australia/Lord_Howe"} {
		for _, text := range []string{"00:00-00:10", "02:00-02:05", "02:30-03:30", "22:00-06:00"} {
			w := parse(t, text+" "+zone)
			begins := 0
			for at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC); at.Year() == 2026; {
				checkNext(t, w, at)
				next := w.Next(at)
				if !next.Equal(at) {
					begins++
				}
				at = next.Add(time.Minute)
				for w.Next(at).Equal(at) {
					at = at.Add(5 * time.Minute)
				}
			}
			if begins < 363 || begins > 367 {
				t.Errorf("%s: open %d times", w, begins)
			}
		}
	}
}

func TestWaits(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"22:00-06:00 Europe/Paris": "waits for the window that begins at 22:00 Europe/Paris",
		"11:00-13:00 UTC":          "",
		"":                         "",
	} {
		if got := parse(t, text).Waits(at); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseWindows(f *testing.F) {
	for _, text := range []string{"22:00-06:00 Europe/Paris", "01:00-02:00, 03:00-04:00", "00:00-24:00 UTC", "22:00-06:00 America/St_Johns"} {
		f.Add(text, int64(1_767_225_600))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		w, err := turns.ParseWindows(text)
		if err != nil {
			return
		}
		at := time.Unix(seconds%(1<<33), 0)
		next := w.Next(at)
		if next.Before(at) || next.Sub(at) > 50*time.Hour || !w.Next(next).Equal(next) {
			t.Fatalf("%q at %s: next %s", text, at.UTC(), next.UTC())
		}
	})
}
