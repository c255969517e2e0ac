package blocks

import (
	"bytes"
	"testing"

	"sequins/test/expect"
)

// MaxValue is the size of the largest value.
func TestMaxValue(t *testing.T) {
	for name, test := range map[string]struct {
		sizes []int // of values
		want  int64
	}{
		"none":  {nil, 0},
		"empty": {[]int{0, 0}, 0},
		"first": {[]int{9, 3, 4}, 9},
		"last":  {[]int{3, 4, 9}, 9},
		"large": {[]int{3, LargeValue + 5, 4}, LargeValue + 5},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w, err := NewWriter(&b, WriterOptions{Partitions: 1})
			expect.NoError(t, err)
			for i, size := range test.sizes {
				expect.NoError(t, w.Add([]byte{'a' + byte(i)}, make([]byte, size)))
			}
			p, err := w.Finish()
			if err != nil || p.MaxValue != test.want {
				t.Fatalf("%+v, %v; want %d", p, err, test.want)
			}
			r := openBytes(t, b.Bytes())
			if err := r.Verify(t.Context()); err != nil || r.Properties().MaxValue != test.want {
				t.Errorf("%+v, %v", r.Properties(), err)
			}
		})
	}
}
