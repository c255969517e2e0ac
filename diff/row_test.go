package diff

import (
	"bytes"
	"testing"
)

// The samples of another node are kept, so their keys have the limit of this node's own.
func TestSamplesOfOthersAreBounded(t *testing.T) {
	for size, valid := range map[int]bool{maxSampleKey: true, maxSampleKey + 1: false, 1 << 20: false} {
		row := Row{Partition: 1, Samples: map[Op][]Key{Added: {bytes.Repeat([]byte("k"), size)}}}
		if err := checkRow(&row, []int{1}); (err == nil) != valid {
			t.Errorf("a key of %d bytes: %v", size, err)
		}
	}
}
