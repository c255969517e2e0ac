package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type name string

func (n name) String() string { return string(n) }

func TestTable(t *testing.T) {
	tab := New("Lookups", "ours").Column("hit ns", "%.0f", true).Column("size", "%.1f", false)
	times := map[name][]float64{"ours": {100, 200, 300}, "theirs": {400, 600, 600}}
	var turns []string
	if err := Rounds(3, []name{"ours", "theirs"}, func(round int, c name) error {
		turns = append(turns, string(c))
		tab.Add(string(c), "hit ns", times[c][round])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	tab.Add("ours", "size", 1.25)
	var out strings.Builder
	tab.Print(&out)
	want := `
### Lookups

|        | hit ns                | size |
|--------|-----------------------|------|
| ours   | 200 (100–300)         | 1.2  |
| theirs | 600 (400–600) · 3.00× |      |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if got, want := strings.Join(turns, " "), "ours theirs theirs ours ours theirs"; got != want {
		t.Errorf("turns %s, want %s", got, want)
	}
	if got := tab.Ratio("ours", "theirs", "hit ns"); got != 1.0/3 {
		t.Errorf("ratio %v", got)
	}
	if got := tab.Ratio("ours", "nobody", "hit ns"); got != 0 {
		t.Errorf("ratio to nobody %v", got)
	}
}

func TestChecks(t *testing.T) {
	var c Checks
	c.AtMost("as fast", 0.5, 0.4)
	c.AtMost("not measured", 0, 0.4)
	c.AtLeast("throughput", 2, 1.5)
	c.Zero("failures", 0)
	var out strings.Builder
	c.Print(&out)
	if c.Missed() != 1 || strings.Count(out.String(), " met ") != 2 || strings.Contains(out.String(), "not measured") {
		t.Errorf("%d missed in\n%s", c.Missed(), out.String())
	}
}
