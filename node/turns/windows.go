package turns

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines and in images without a database of time zones
)

// Windows are times of the day at which loads may begin. The zero Windows are always open. A window is open while the clock shows a time within it: one
// within the hour that the clock skips at the beginning of summer time does not open on that day.
type Windows struct {
	all  []window
	zone *time.Location
	text string
}

// String returns the text that w is from; "" for the zero Windows.
func (w Windows) String() string { return w.text }

// A window is a time of each day, in minutes after midnight. begin is less than a day, and end is less than a day after begin or exactly one.
type window struct{ begin, end int }

const (
	day     = 24 * 60 // minutes
	maxText = 4096    // bytes
)

// ParseWindows parses "HH:MM-HH:MM", or several of these separated by commas. A zone of the IANA database may follow after a
// space, for all of them; without one, the times are in the local time zone of the process. A window whose end is not after its
// beginning ends on the next day; "00:00-24:00" is always open. The empty text means the zero Windows.
func ParseWindows(text string) (Windows, error) {
	if len(text) > maxText {
		return Windows{}, fmt.Errorf("is longer than %d bytes", maxText)
	}
	text = strings.TrimSpace(text)
	w := Windows{zone: time.Local, text: text}
	if text == "" {
		return Windows{}, nil
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		span, zone, _ := strings.Cut(strings.TrimSpace(part), " ")
		if zone = strings.TrimSpace(zone); zone != "" {
			if i < len(parts)-1 {
				return Windows{}, fmt.Errorf("has the zone %q before its end: one zone at the end is that of all windows", zone)
			}
			location, err := time.LoadLocation(zone)
			if err != nil {
				return Windows{}, fmt.Errorf("has the time zone %q, which is not known: one such as Europe/Paris or UTC is", zone)
			}
			w.zone = location
		}
		each, err := parseWindow(span)
		if err != nil {
			return Windows{}, err
		}
		w.all = append(w.all, each)
	}
	return w, nil
}

func parseWindow(span string) (window, error) {
	from, to, found := strings.Cut(span, "-")
	if !found {
		return window{}, fmt.Errorf("has %q, which is not a window such as 22:00-06:00", span)
	}
	w := window{}
	var err1, err2 error
	w.begin, err1 = parseTime(from)
	w.end, err2 = parseTime(to)
	switch {
	case err1 != nil || err2 != nil || w.begin == day:
		return window{}, fmt.Errorf("has %q, which is not a window such as 22:00-06:00, from 00:00 to 24:00", span)
	case w.begin == w.end:
		return window{}, fmt.Errorf("has %q, which is empty; 00:00-24:00 is a whole day", span)
	case w.end < w.begin:
		w.end += day
	}
	return w, nil
}

// parseTime parses HH:MM, at most 24:00, into minutes.
func parseTime(s string) (int, error) {
	if s == "24:00" {
		return day, nil
	}
	t, err := time.Parse("15:04", s)
	if err == nil && len(s) != len("HH:MM") {
		err = errors.New("not a time")
	}
	return t.Hour()*60 + t.Minute(), err
}

// Next returns t if a window is open then, otherwise the minute at which the next one opens.
func (w Windows) Next(t time.Time) time.Time {
	for !w.isOpen(t) {
		t = t.Truncate(time.Minute).Add(time.Minute)
	}
	return t
}

func (w Windows) isOpen(t time.Time) bool {
	if len(w.all) == 0 {
		return true
	}
	hour, minute, _ := t.In(w.zone).Clock()
	now := hour*60 + minute
	return slices.ContainsFunc(w.all, func(each window) bool { return each.begin <= now && now < each.end || now+day < each.end })
}

// Waits describes the wait for the next window; "" if one is open at t.
func (w Windows) Waits(t time.Time) string {
	next := w.Next(t)
	if next.Equal(t) {
		return ""
	}
	text := "waits for the window that begins at " + next.In(w.zone).Format("15:04")
	if w.zone != time.Local {
		text += " " + w.zone.String()
	}
	return text
}
