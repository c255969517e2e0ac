package human

import (
	"testing"
	"time"
)

func TestInWords(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1234: "-1,234", -123: "-123",
	} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 40: "3.0 TiB", 1 << 60: "1024.0 PiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", -1: "0 s", 0: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", 59*time.Minute + 59*time.Second: "59 min",
		time.Hour: "1 h 0 min", 90 * time.Minute: "1 h 30 min", 47*time.Hour + 5*time.Minute: "47 h 5 min",
		48 * time.Hour: "2 days", 100 * time.Hour: "4 days", 1000 * time.Hour: "41 days",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestRanges(t *testing.T) {
	var odd []int
	for i := range 20 {
		odd = append(odd, 2*i+1)
	}
	for want, list := range map[string][]int{
		"": nil, "7": {7}, "0-1, 4": {0, 1, 4}, "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, …": odd, "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23": odd[:12],
	} {
		if got := Ranges(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}

func TestSome(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b, c, d, e": {"a", "b", "c", "d", "e"}, "a, b, c, d, e and 2 more": {"a", "b", "c", "d", "e", "f", "g"}} {
		if got := Some(names); got != want {
			t.Errorf("%v: %q, want %q", names, got, want)
		}
	}
	if got := RangesUpTo([]int{1, 3, 5}, 2); got != "1, 3, …" {
		t.Error(got)
	}
}

func TestRates(t *testing.T) {
	for d, want := range map[time.Duration]string{400: "0.4 µs", 4200: "4 µs", 1.25e6: "1.2 ms", 12e6: "12 ms", 3e9: "3.0 s"} {
		if got := Latency(d); got != want {
			t.Errorf("Latency(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", .01: "0.1", 2.5: "2.5", 1234.4: "1,234"} {
		if got := Rate(n); got != want {
			t.Errorf("Rate(%v) = %q, want %q", n, got, want)
		}
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.0 µs", 52 * time.Millisecond: "52 ms", 4200 * time.Millisecond: "4.2 s", 162 * time.Second: "2 min 42 s", 90 * time.Minute: "1 h 30 min"} {
		if got := Took(d); got != want {
			t.Errorf("Took(%v) = %q, want %q", d, got, want)
		}
	}
}
