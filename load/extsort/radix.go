package extsort

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
)

// maxCompared is the number of entries up to which comparing them is the fastest.
const maxCompared = 64

// sort brings the entries into the order of their keys, and of equal keys that of the record that was
// added last to the front. It sorts in place, by one byte of the keys after the other (American flag
// sort): first those in the entries themselves; where these are equal, the entries get the next
// eight. In keys like user:000000001234 the first bytes tell nothing apart, so bytes in which all
// agree are found and passed over. The records themselves are read once for every eight bytes of
// the key that are needed, and not for comparing.
// Afterwards a prefix says nothing any more.
func (a *arena) sort() { a.sortFrom(a.entries(), 0) }

// sortFrom sorts entries whose keys agree in their first depth bytes, and which have the eight
// bytes from there on as their prefixes.
//
// It calls itself for all parts but the largest, and goes on with that, so that keys made to part
// late, and one by one, do not let the stack grow.
func (a *arena) sortFrom(e []entry, depth int) {
	for len(e) > 1 {
		differ := differing(e)
		if differ == 0 {
			e = a.splitEnded(e, depth)
			depth += 8
			continue
		}
		if len(e) <= maxCompared {
			slices.SortFunc(e, func(x, y entry) int {
				if x.prefix != y.prefix {
					return cmp.Compare(x.prefix, y.prefix)
				}
				return cmp.Or(bytes.Compare(a.key(x)[depth:], a.key(y)[depth:]), cmp.Compare(y.off, x.off))
			})
			return
		}
		e = a.sortBuckets(e, uint(63-bits.LeadingZeros64(differ))&^7, depth)
	}
}

// differing has a bit set for each bit in which not all prefixes agree.
func differing(e []entry) uint64 {
	var differ uint64
	for _, x := range e {
		differ |= x.prefix ^ e[0].prefix
	}
	return differ
}

// scatter sorts e by the byte of the prefix that is shift bits from its end, in no order otherwise,
// and notes where the entries with each byte end.
func scatter(e []entry, shift uint, end *[256]int) {
	var next [256]int
	for i := range e {
		next[byte(e[i].prefix>>shift)]++
	}
	sum := 0
	for b, n := range next {
		next[b] = sum
		sum += n
		end[b] = sum
	}
	for b := range 256 {
		for next[b] < end[b] {
			x := e[next[b]]
			for to := byte(x.prefix >> shift); int(to) != b; to = byte(x.prefix >> shift) {
				e[next[to]], x = x, e[next[to]]
				next[to]++
			}
			e[next[b]] = x
			next[b]++
		}
	}
}

// sortBuckets sorts e by a byte of the prefix, and then each part in which that is the same, except
// for the largest, which it returns.
func (a *arena) sortBuckets(e []entry, shift uint, depth int) (largest []entry) {
	var end [256]int
	scatter(e, shift, &end)
	from := 0
	for _, to := range end {
		part := e[from:to]
		from = to
		if len(part) > len(largest) {
			part, largest = largest, part
		}
		a.sortFrom(part, depth)
	}
	return largest
}

// splitEnded goes on with entries that agree in all bytes of their prefixes. The keys that end
// there come first, and differ only in how many of the zeros at their end are their own. The
// others are returned, with the next eight bytes as their prefixes.
func (a *arena) splitEnded(e []entry, depth int) (longer []entry) {
	ended := 0
	for i, x := range e {
		if key := a.key(x); len(key) > depth+8 {
			e[i].prefix = prefix(key[depth+8:])
		} else {
			x.prefix = uint64(len(key)-depth)<<56 | (1<<56 - 1 - x.off) // the newest first
			e[i], e[ended] = e[ended], x
			ended++
		}
	}
	slices.SortFunc(e[:ended], func(x, y entry) int { return cmp.Compare(x.prefix, y.prefix) })
	return e[ended:]
}
