package version

import (
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/shard"
)

// in returns the input that tests spell as a name, or as name~digit: another input of that name. "1~0" has a lesser hash than
// "1", and "1~f" a greater one. The zero Input is spelled "".
func in(spelled string) content.Input {
	name, variant, _ := strings.Cut(spelled, "~")
	if name == "" {
		return content.Input{}
	}
	if variant == "" {
		return content.Input{Name: name, Hash: "8" + content.Sum(name)[1:]}
	}
	return content.Input{Name: name, Hash: variant + content.Sum(spelled)[len(variant):]}
}

func inputs(spelled ...string) []content.Input {
	all := make([]content.Input, len(spelled))
	for i, s := range spelled {
		all[i] = in(s)
	}
	return all
}

// spell is the inverse of in.
func spell(input content.Input) string {
	if input == in(input.Name) {
		return input.Name
	}
	return input.Name + "~" + input.Hash[:1]
}

func newVersion(spelled string, partitions int) *Version {
	c := content.Content{Input: in(spelled), Division: content.Sum("division")}
	return New(Info{DB: "db", Content: c, Partitions: partitions, Partitioner: shard.String, Following: Solo{}})
}

func TestInputsOfTests(t *testing.T) {
	for _, s := range []string{"1", "1~0", "1~f"} {
		if !in(s).Valid() || spell(in(s)) != s || in(s).Name != "1" {
			t.Errorf("%s is %+v, %s", s, in(s), spell(in(s)))
		}
	}
	if in("1~0").Hash >= in("1").Hash || in("1~f").Hash <= in("1").Hash {
		t.Error("the hashes of 1~0, 1, and 1~f do not ascend")
	}
}
