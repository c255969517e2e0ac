package shard

import (
	"path"
	"strings"
)

// Detector finds the partitioners that may have produced a version's files: each
// key that is added, with the number of its file, rules out every partitioner
// that would have put it elsewhere. A Detector is not safe for concurrent use.
type Detector struct {
	n   int
	out [numPartitioners]bool
}

// NewDetector returns a Detector for a version of n partitions that has ruled out
// no partitioner.
func NewDetector(n int) *Detector { return &Detector{n: n} }

// Add rules out the partitioners that do not map key to partition file.
func (d *Detector) Add(file int, key []byte) {
	for p := range numPartitioners {
		if !d.out[p] && p.Partition(key, d.n) != file {
			d.out[p] = true
		}
	}
}

// Merge rules out the partitioners that other has ruled out.
func (d *Detector) Merge(other *Detector) {
	for p, out := range other.out {
		d.out[p] = d.out[p] || out
	}
}

// Candidates returns the partitioners that match every key so far, in order of
// preference.
func (d *Detector) Candidates() []Partitioner {
	var fit []Partitioner
	for p := range numPartitioners {
		if !d.out[p] {
			fit = append(fit, p)
		}
	}
	return fit
}

// maxIndexDigits keeps a number parsed from a name within 32 bits.
const maxIndexDigits = 9

// FileIndex returns the partition number in a file's name. It parses names like
// part-00003, part-r-00003 (MapReduce), part-r-00003/data (a MapFile) and
// part-00003-<anything> (Spark, Cascading); the first run of digits counts. For
// any other name it returns position, the file's index among the version's files
// in name order.
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

// leadingNumber parses the digits at the beginning of s. They must be at the end
// of s, or be followed by a separator.
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
