package content

import (
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	c := Content{Input{"2026-01-31", Sum("a")}, Sum("b")}
	if again, err := Parse(c.Name, c.Code()); err != nil || again != c {
		t.Errorf("Parse(%q) = %v, %v, want %v", c.Code(), again, err, c)
	}
	if code := (Content{}).Code(); code != "" {
		t.Errorf("the zero Content has the code %q", code)
	}
	for _, code := range []string{"", ".", c.Hash, c.Hash + ".", "." + c.Division, c.Code() + "0", strings.ToUpper(c.Code()), c.Hash + "." + c.Division[:15] + "g", c.Code() + "." + c.Division} {
		if got, err := Parse(c.Name, code); err == nil {
			t.Errorf("Parse(%q) = %v", code, got)
		}
	}
	if _, err := Parse("a/b", c.Code()); err == nil {
		t.Error("a name with a slash is accepted")
	}
}

// TestSum: texts that are cut differently have different hashes.
func TestSum(t *testing.T) {
	seen := make(map[string]string)
	for _, texts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"a", "b", ""}, {"1 a\n1 b"}, {"a\n1 b"}, {"b", "a"}} {
		sum, name := Sum(texts...), strings.Join(texts, "|")
		if !isHash(sum) {
			t.Errorf("Sum(%q) = %q, which is no hash", name, sum)
		}
		if other, found := seen[sum]; found {
			t.Errorf("%q and %q have the hash %s", name, other, sum)
		}
		seen[sum] = name
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1", Content{Input{"1", Sum("a")}, Sum("b")}.Code())
	f.Fuzz(func(t *testing.T, name, code string) {
		c, err := Parse(name, code)
		if err == nil && (c.Code() != code || c.Name != name || !c.Valid()) {
			t.Errorf("Parse(%q, %q) = %v", name, code, c)
		}
	})
}
