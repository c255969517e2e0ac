package node

import (
	"cmp"
	"fmt"
	"strings"

	"sequins/internal/content"
)

// passedOver describes a version in the source that is not loaded because its name is less than that of the served one byte by byte,
// although its number is greater, as 10 is after 9; "" if there is none.
func (ls *lister) passedOver(in content.Input) string {
	name := in.Name
	if in != ls.db.facts.Current || ls.db.pin.Version != "" {
		return ""
	}
	for _, other := range ls.last.Names {
		if other >= name { // they are ascending
			break
		}
		if numberedAfter(other, name) {
			return fmt.Sprintf("version %s of %s is in the source and is not loaded: names are compared byte by byte, and %[1]s is less than %[3]s, which is served; write it with a greater name, such as a date or numbers of equal length",
				other, ls.db.name, name)
		}
	}
	return ""
}

// numberedAfter reports whether two names differ in the number at their ends alone, and that of a is greater.
func numberedAfter(a, b string) bool {
	const digits = "0123456789"
	stemA, stemB := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	a, b = strings.TrimLeft(a[len(stemA):], "0"), strings.TrimLeft(b[len(stemB):], "0")
	return stemA == stemB && cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
