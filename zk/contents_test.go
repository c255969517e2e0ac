package zk

import (
	"slices"
	"strings"
	"testing"

	"sequins/internal/content"
)

// Contents of version 2026.
var (
	one = content.Content{Input: content.Input{Name: "2026", Hash: "0123456789abcdef"}, Division: "fedcba9876543210"}
	two = content.Content{Input: content.Input{Name: "2026", Hash: "00000000000000aa"}, Division: "fedcba9876543210"}
)

func TestEncodeContents(t *testing.T) {
	for want, contents := range map[string][][]content.Content{
		`{"contents":["0123456789abcdef.fedcba9876543210"]}`:                                     {{one}},
		`{"contents":["00000000000000aa.fedcba9876543210","0123456789abcdef.fedcba9876543210"]}`: {{one, two}, {two, one}},
	} {
		for _, cs := range contents {
			if got := string(EncodeContents(cs)); got != want {
				t.Errorf("%v: %s, want %s", cs, got, want)
			}
		}
	}
}

func TestParseContents(t *testing.T) {
	quoted := `"` + one.Code() + `"`
	for data, tt := range map[string]struct {
		want []content.Content
		err  string
	}{
		"": {nil, ""},
		string(EncodeContents([]content.Content{one, two})):    {[]content.Content{two, one}, ""},
		`{"contents":[` + quoted + `,` + quoted + `]}`:         {[]content.Content{one, one}, ""},
		`{"contents":[` + quoted + `],"zone":7}`:               {[]content.Content{one}, ""},
		`{"contents":[` + quoted + `,""]}`:                     {nil, `"" is not a content of version 2026`},
		`{"contents":[` + quoted + `,"0.1"]}`:                  {nil, `"0.1" is not a content`},
		`{"contents":["0123456789abcdef"]}`:                    {nil, "is not a content"},
		`{"contents":["0123456789ABCDEF.fedcba9876543210"]}`:   {nil, "is not a content"},
		`{"contents":["0123456789abcdef.fedcba9876543210.0"]}`: {nil, "is not a content"},
		`{"contents":["../../../../../.fedcba9876543210"]}`:    {nil, "is not a content"},
		`{"contents":[]}`:             {nil, "data without contents"},
		`{"plan":"0123456789abcdef"}`: {nil, "data without contents"},
		`{}`:                          {nil, "data without contents"},
		`null`:                        {nil, "data without contents"},
		`{"contents":` + quoted + `}`: {nil, "cannot unmarshal"},
		`{"contents":[7]}`:            {nil, "cannot unmarshal"},
		`{"contents":[` + quoted:      {nil, "unexpected end"},
		"\x00":                        {nil, "invalid character"},
		`{"contents":[` + quoted + strings.Repeat(`,`+quoted, 200) + `]}`: {nil, "more than the limit of 4096"},
		`{"contents":["` + strings.Repeat("0", 4000) + `"]}`:              {nil, "is not a content"},
	} {
		got, err := ParseContents("2026", []byte(data))
		if !slices.Equal(got, tt.want) || !errContains(err, tt.err) {
			t.Errorf("%.100s: %v, %v", data, got, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.100s: an error of %d bytes", data, len(err.Error()))
		}
	}
	if got, err := ParseContents("..", EncodeContents([]content.Content{one})); err == nil {
		t.Errorf("of a version without a valid name: %v", got)
	}
}

// Contents that are accepted are valid, and the same after another round.
func FuzzParseContents(f *testing.F) {
	f.Add(EncodeContents([]content.Content{one}))
	f.Add(EncodeContents([]content.Content{one, two}))
	f.Add([]byte(`{"contents":["x.y"],"plan":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		contents, err := ParseContents("2026", data)
		if err != nil || len(data) == 0 {
			return
		}
		if len(contents) == 0 {
			t.Fatalf("%q lists nothing, and has no error", data)
		}
		for _, c := range contents {
			if !c.Valid() || c.Name != "2026" {
				t.Fatalf("%q has %v", data, c)
			}
		}
		again, err := ParseContents("2026", EncodeContents(contents))
		if err != nil || len(again) != len(contents) {
			t.Fatalf("%q: %v, then %v, %v", data, contents, again, err)
		}
	})
}

func TestParseReport(t *testing.T) {
	code := one.Code()
	for name, want := range map[string]struct {
		c         content.Content
		addr, err string
	}{
		code + "@host:9599":          {one, "host:9599", ""},
		code + "@[::1]:1":            {one, "[::1]:1", ""},
		code:                         {err: "not of the form"},
		"":                           {err: "not of the form"},
		"@host:1":                    {err: `"" is not a content of version 2026`},
		code[1:] + "@host:1":         {err: "is not a content"},
		code + "0@host:1":            {err: "is not a content"},
		one.Hash + "@host:1":         {err: "is not a content"},
		strings.ToUpper(code) + "@h": {err: "is not a content"},
		code + "@host":               {err: "missing port"},
		code + "@host:01":            {err: "is not a port"},
		code + "@a@host:1":           {err: "is not a host"},
	} {
		c, addr, err := ParseReport("2026", name)
		if c != want.c || addr != want.addr || !errContains(err, want.err) {
			t.Errorf("%q: %v, %q, %v", name, c, addr, err)
		}
		if err == nil && ReportPath("db", c, addr) != "gates/db/2026/"+name {
			t.Errorf("%q became %q", name, ReportPath("db", c, addr))
		}
	}
}
