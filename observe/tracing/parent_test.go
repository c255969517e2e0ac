package tracing

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	sampled   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func TestParseParent(t *testing.T) {
	tests := map[string]struct {
		in             string
		known, sampled bool
	}{
		"sampled":              {sampled, true, true},
		"not sampled":          {unsampled, true, false},
		"unknown flags":        {sampled[:53] + "f9", true, true},
		"others, not sampled":  {sampled[:53] + "f8", true, false},
		"a later version":      {"01" + sampled[2:], true, true},
		"with more to come":    {"fe" + sampled[2:] + "-and more", true, true},
		"more, not set apart":  {"01" + sampled[2:] + "1", false, false},
		"more than 00 has":     {sampled + "-00", false, false},
		"a dash more":          {sampled + "-", false, false},
		"version ff":           {"ff" + sampled[2:], false, false},
		"nothing":              {"", false, false},
		"short":                {sampled[:54], false, false},
		"no trace":             {"00-" + strings.Repeat("0", 32) + sampled[35:], false, false},
		"no span":              {sampled[:36] + strings.Repeat("0", 16) + "-01", false, false},
		"capitals":             {strings.Replace(sampled, "b", "B", 1), false, false},
		"no digit":             {strings.Replace(sampled, "b", "g", 1), false, false},
		"no digit in version":  {"0g" + sampled[2:], false, false},
		"no digit in flags":    {sampled[:54] + " ", false, false},
		"other separators":     {strings.ReplaceAll(sampled, "-", "_"), false, false},
		"space before":         {" " + sampled, false, false},
		"two, as one would be": {sampled + "," + sampled, false, false},
	}
	for name, test := range tests {
		p := ParseParent([]byte(test.in))
		if p.Known() != test.known || p.flags.IsSampled() != test.sampled {
			t.Errorf("%s: %q: known %v, sampled %v", name, test.in, p.Known(), p.flags.IsSampled())
		}
		if !test.known && p != (Parent{}) {
			t.Errorf("%s: something is left of %q: %+v", name, test.in, p)
		}
	}
}

// ParseParent gives the same result as OpenTelemetry's parser, with two
// exceptions: that one rejects unknown flags of version 00, and accepts a
// trailing '-'.
func FuzzParseParent(f *testing.F) {
	for _, s := range []string{sampled, unsampled, "01" + sampled[2:] + "-x", "ff" + sampled[2:], strings.ToUpper(sampled), sampled + "-", "cc" + sampled[2:] + "--"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		carrier := propagation.MapCarrier{"traceparent": s}
		want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
		got := ParseParent([]byte(s)).context("")
		if want.IsValid() && !got.IsValid() && strings.HasPrefix(s, "00") && len(s) == 56 && s[55] == '-' {
			return
		}
		if !want.IsValid() && got.IsValid() && strings.HasPrefix(s, "00") && s[53:] > "03" {
			return
		}
		if !got.Equal(want) && (got.IsValid() || want.IsValid()) {
			t.Errorf("%q: %+v, want %+v", s, got, want)
		}
	})
}
