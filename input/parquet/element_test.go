package parquet

import (
	"testing"

	"sequins/test/expect"
)

// The repeated group of a list is its element if its only field is repeated itself.
func TestListOfGroupsOfRepeated(t *testing.T) {
	for repetition, want := range map[int64]string{0: "x", repeated: "element"} {
		fields := []schemaElement{
			{name: "root", children: 1},
			{name: "l", children: 1, repetition: optional, logical: logicalType{id: logicalList}},
			{name: "element", children: 1, repetition: repeated},
			{name: "x", leaf: true, physical: physicalInt32, repetition: repetition},
		}
		root, _, err := newTree(fields, new(calendar))
		expect.NoError(t, err)
		if e, _ := root.children[0].element(); e.name != want {
			t.Errorf("repetition %d: the element is %s, and should be %s", repetition, e.name, want)
		}
	}
}
