package render

import (
	"fmt"
	"strings"
)

// FieldNames describes the fields that records have, for an error about one that they lack. Of many, it names the first.
func FieldNames(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("the fields are %s and %d more", strings.Join(names[:most], ", "), more)
	}
	return "the fields are " + strings.Join(names, ", ")
}
