package term_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/term"
)

func TestTable(t *testing.T) {
	table := term.NewTable("DATABASE", "STATE", "")
	table.Row("words", "ERROR", "the file part-00000 is damaged: it ends in a record")
	table.Row("日本", "", "")
	table.Row("a", "", "held")
	want := "DATABASE  STATE\nwords     ERROR  the file part-00000 is damaged: it ends in a record\n日本\na                held\n"
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
