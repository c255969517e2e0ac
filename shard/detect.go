package shard

import (
	"path"
	"strings"
)

// A Detector finds out which functions a version's files can have been cut
// with: it is shown keys and the number of the file each was found in, and
// strikes out every partitioner that would have put the key elsewhere.
// A Detector is for one goroutine at a time.
type Detector struct {
	n   int
	out [numPartitioners]bool
}

// NewDetector returns a Detector for a version of n partitions, under which
// everything still fits.
func NewDetector(n int) *Detector { return &Detector{n: n} }

// Add strikes out the partitioners that do not put key into partition file.
func (d *Detector) Add(file int, key []byte) {
	for p := range numPartitioners {
		if !d.out[p] && p.Partition(key, d.n) != file {
			d.out[p] = true
		}
	}
}

// Merge strikes out the partitioners that other has struck out.
func (d *Detector) Merge(other *Detector) {
	for p, out := range other.out {
		d.out[p] = d.out[p] || out
	}
}

// Candidates returns the partitioners that fit every key so far, in order of
// preference; none if there is no such function.
func (d *Detector) Candidates() []Partitioner {
	var fit []Partitioner
	for p := range numPartitioners {
		if !d.out[p] {
			fit = append(fit, p)
		}
	}
	return fit
}

// maxIndexDigits keeps a number taken from a name within an int of 32 bits.
const maxIndexDigits = 9

// FileIndex returns the number that the job which wrote a file gave to it. It
// is read from names like part-00003, part-r-00003 (MapReduce),
// part-r-00003/data (a MapFile) and part-00003-<anything> (Spark, Cascading);
// the first run of digits counts. Any other name has no number, and its
// position among the version's files, in name order, takes its place.
func FileIndex(name string, position int) int {
	if dir, ok := strings.CutSuffix(name, "/data"); ok {
		name = dir
	}
	rest, ok := strings.CutPrefix(path.Base(name), "part-")
	if !ok {
		return position
	}
	if tag, after, ok := strings.Cut(rest, "-"); ok && isLetters(tag) {
		rest = after
	}
	if i, ok := leadingNumber(rest); ok {
		return i
	}
	return position
}

// leadingNumber reads the digits that s begins with. They must be followed by
// nothing, or by something that plainly ends a word.
func leadingNumber(s string) (int, bool) {
	n, i := 0, 0
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		if i == maxIndexDigits {
			return 0, false
		}
		n = 10*n + int(s[i]-'0')
	}
	if i == 0 || i < len(s) && s[i] != '-' && s[i] != '.' && s[i] != '_' {
		return 0, false
	}
	return n, true
}

func isLetters(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}
