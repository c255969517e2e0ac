package tracing

import (
	"strings"
	"testing"
)

const (
	sampled   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// A request is traced if its parent is sampled, and not if it is not. A malformed header is none: without sampling, the request is not traced.
func TestParent(t *testing.T) {
	tests := map[string]struct {
		in             string
		known, sampled bool
	}{
		"sampled":              {sampled, true, true},
		"not sampled":          {unsampled, true, false},
		"unknown flags":        {sampled[:53] + "f9", false, false},
		"others, not sampled":  {sampled[:53] + "f8", true, false},
		"a later version":      {"01" + sampled[2:], true, true},
		"with more to come":    {"fe" + sampled[2:] + "-and more", true, true},
		"more, not set apart":  {"01" + sampled[2:] + "1", false, false},
		"more than 00 has":     {sampled + "-00", false, false},
		"a dash more":          {sampled + "-", true, true},
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
	tracer, ended := recorded(t)
	for name, test := range tests {
		for _, sample := range []float64{0, 1} {
			tracer.SetSample(sample)
			ended.Reset()
			r := child(tracer, test.in, "")
			if want := test.sampled || !test.known && sample == 1; (r != nil) != want {
				t.Errorf("%s: %q: traced %v at a sample of %v", name, test.in, r != nil, sample)
			}
			r.End(Answer{})
			for _, s := range ended.Ended() {
				if s.Parent().IsValid() != test.sampled {
					t.Errorf("%s: %q: the parent is %v", name, test.in, s.Parent())
				}
			}
		}
	}
}
