package render_test

import (
	"fmt"
	"testing"

	"sequins/internal/render"
)

func TestFieldNames(t *testing.T) {
	if got := render.FieldNames([]string{"a", "b"}); got != "the fields are a, b" {
		t.Error(got)
	}
	names := make([]string, 28)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	if got := render.FieldNames(names); got != "the fields are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 8 more" {
		t.Error(got)
	}
}
