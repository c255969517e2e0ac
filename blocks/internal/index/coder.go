package index

import "math/bits"

// coder maps fences to codes that keep their order and leave out what no fence has: where keys are
// hexadecimal digits, a byte takes 16 values and not 256, and codes are as dense as the keys. A
// table over codes is then as good as one over numbers evenly spread.
//
// The code of a fence is a number in mixed radix: each of its first bytes counts as its rank among
// the values that some fence has in that place. The zeros that fill up a short fence do not count as values:
// they would leave a hole in front of every place.
type coder struct {
	// weights of each byte, by place and value, 0 in the places that do not count. absent marks
	// values that no fence has.
	weights [8][256]uint64
	places  int
	max     uint64 // no code is greater
}

// absent is above the sum of all weights, and eight of it do not overflow.
const absent = 1 << 56

// newCoder looks at all fences and takes as many of their first bytes as tell the pages apart and where between
// two of them a key lies.
func newCoder(fences []uint64) *coder {
	var used [8][256]bool
	for _, f := range fences {
		for place := range 8 - bits.TrailingZeros64(f)/8 {
			used[place][byte(f>>(56-8*place))] = true
		}
	}
	var counts []uint64
	c := &coder{max: 1}
	for place := 0; place < len(used) && c.max < 64*uint64(len(fences)); place++ {
		n := count(&used[place])
		if n == 0 {
			break
		}
		counts = append(counts, n)
		c.max *= n
	}
	c.places = len(counts)
	weight := c.max
	for place, n := range counts {
		weight /= n
		c.fill(place, &used[place], weight)
	}
	return c
}

func count(used *[256]bool) (n uint64) {
	for _, u := range used {
		if u {
			n++
		}
	}
	return n
}

// fill sets the weights of one place, in which a rank weighs one.
func (c *coder) fill(place int, used *[256]bool, one uint64) {
	rank := uint64(0)
	for value, u := range used {
		c.weights[place][value] = rank * one
		if u {
			rank++
		} else {
			c.weights[place][value] |= absent
		}
	}
}

// code is not less than the codes of the fences up to f, nor greater than those of the fences from
// f on.
func (c *coder) code(f uint64) uint64 {
	w := &c.weights
	sum := w[0][byte(f>>56)] + w[1][byte(f>>48)] + w[2][byte(f>>40)] + w[3][byte(f>>32)] +
		w[4][byte(f>>24)] + w[5][byte(f>>16)] + w[6][byte(f>>8)] + w[7][byte(f)]
	if sum < absent {
		return sum
	}
	return c.codeAbsent(f)
}

// codeAbsent is code for an f with a value that no fence has in its place. It stands before the
// next greater one, whatever follows.
func (c *coder) codeAbsent(f uint64) (code uint64) {
	for place := range c.places {
		w := c.weights[place][byte(f>>(56-8*place))]
		code += w &^ absent
		if w&absent != 0 {
			break
		}
	}
	return code
}
