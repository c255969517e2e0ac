package term_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/term"
)

// What is no terminal has no width, and colors only by force.
func TestConsole(t *testing.T) {
	for _, test := range []struct {
		force, no string
		colors    bool
	}{{"", "", false}, {"1", "", true}, {"0", "", false}, {"1", "1", false}} {
		t.Setenv("CLICOLOR_FORCE", test.force)
		t.Setenv("NO_COLOR", test.no)
		c := term.NewConsole(new(bytes.Buffer))
		if c.Width != 0 || c.Colors != test.colors {
			t.Errorf("%+v: %+v", test, c)
		}
		if got := c.Paint(term.Red, "ERROR"); (got != "ERROR") != test.colors || !strings.Contains(got, "ERROR") {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	show := func(c term.Console, headings ...string) string {
		out.Reset()
		c.Out = &out
		table := term.NewTable(c, headings...)
		table.Row("words", "ERROR", "the file part-00000 is damaged: it ends in a record").Color(1, term.Red)
		table.Row("a", "", "")
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, test := range []struct {
		console term.Console
		last    string
		want    string
	}{
		{term.Console{}, "", "DATABASE  STATE\nwords     ERROR  the file part-00000 is damaged: it ends in a record\na\n"},
		{term.Console{Width: 68}, "", "DATABASE  STATE\nwords     ERROR  the file part-00000 is damaged: it ends in a record\na\n"},
		{term.Console{Width: 40, Colors: true}, "", "\x1b[1mDATABASE\x1b[0m  \x1b[1mSTATE\x1b[0m\nwords     \x1b[31mERROR\x1b[0m\n    the file part-00000 is damaged: it ends in a record\na\n"},
		{term.Console{Width: 40}, "WHY", "DATABASE  STATE  WHY\nwords     ERROR\n    the file part-00000 is damaged: it ends in a record\na\n"},
	} {
		if diff := cmp.Diff(test.want, show(test.console, "DATABASE", "STATE", test.last)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test, diff)
		}
	}
}
