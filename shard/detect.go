package shard

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A Cut is a way in which the records of a version may be cut into files.
type Cut struct {
	By         Partitioner
	Partitions int
}

// Detector finds the cuts that may have produced a version's files: each
// key that is added, with the number of its file, rules out every cut
// that would have put it elsewhere. A Detector is not safe for concurrent use.
//
// Jobs may leave out the files of empty partitions, so that the number of partitions is not known. A function h puts a key
// into file i of n if n divides h - i. So n divides the greatest common divisor of these differences, which with a
// few keys is n itself, and with a function that did not cut the files is soon less than the number of a file.
type Detector struct {
	n           int // partitions if no file is left out; 0: some are
	least, most int // bounds of the number of partitions otherwise
	naming      Naming
	keys        int // that were added

	// divisors has, for each function, the greatest common divisor of h - i of all keys. It is 0 while all were 0.
	divisors [numPartitioners]uint64

	refuted [numPartitioners]bool
}

// NewDetector returns a Detector for a version of n partitions that has ruled out nothing. If n is 0, or nothing fits it, the
// number of partitions is found: at least least, which is more than the number of every file, and at most most. If most is less than least, it is not. naming is how the files are named.
func NewDetector(n, least, most int, naming Naming) *Detector {
	return &Detector{n: n, least: least, most: most, naming: naming}
}

// Add rules out what does not map key to partition file.
func (d *Detector) Add(file int, key []byte) {
	if file >= d.n {
		d.n = 0
	}
	d.keys++
	for p := range numPartitioners {
		if !d.possible(p) {
			continue
		}
		if size := p.bits(); size > 0 {
			if _, ok := parseNumber(key, size); !ok {
				d.divisors[p] = 1 // not a key that p is for
				continue
			}
		}
		difference := int64(p.Hash(key)) - int64(file)
		d.divisors[p] = gcd(d.divisors[p], uint64(max(difference, -difference)))
	}
}

// possible reports whether a number of partitions may fit p.
func (d *Detector) possible(p Partitioner) bool {
	return d.fits(p) || !d.refuted[p] && p.writes(d.naming) && d.least <= d.most && (d.divisors[p] == 0 || d.divisors[p] >= uint64(d.least))
}

// fits reports whether p may have cut n files.
func (d *Detector) fits(p Partitioner) bool {
	return !d.refuted[p] && p.writes(d.naming) && d.n > 0 && d.divisors[p]%uint64(d.n) == 0
}

// writes reports whether files with such names may be cut by p. The hashes of Kafka and of Hive are considered only where the names
// are theirs: of keys with a common beginning and length, many functions differ by a constant, so that each more of them costs
// all versions a larger sample.
func (p Partitioner) writes(naming Naming) bool {
	switch p {
	case Kafka:
		return naming == KafkaNames || naming == AnyNames
	case Hive, HiveInt, HiveLong, HiveMurmur3, HiveMurmur3Int, HiveMurmur3Long:
		return naming == HiveNames || naming == AnyNames
	}
	return true
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// minKeys is the least number of keys that tell the number of partitions: fewer have a common divisor by chance.
const minKeys = 24

// Merge rules out what other has ruled out.
func (d *Detector) Merge(other *Detector) {
	d.n, d.keys = min(d.n, other.n), d.keys+other.keys
	for p := range d.divisors {
		d.divisors[p] = gcd(d.divisors[p], other.divisors[p])
	}
}

// Candidates returns what fits every key so far, in order of
// preference: the functions that fit if no file is left out, and then those by which some are.
func (d *Detector) Candidates() []Cut {
	var all, gaps []Cut
	for p := range numPartitioners {
		switch divisor := d.divisors[p]; {
		case p == Hive && d.fits(String): // they differ in keys that are not ASCII, and there is none
		case d.fits(p):
			all = append(all, Cut{p, d.n})
		case d.keys >= minKeys && !d.refuted[p] && p.writes(d.naming) && uint64(d.least) <= divisor && divisor <= uint64(max(0, d.most)):
			gaps = append(gaps, Cut{p, int(divisor)})
		}
	}
	return append(all, gaps...)
}

// Refute excludes a function of which it is known that it did not cut the files. With it, Candidates and Decided consider Hive also where String fits the
// keys.
func (d *Detector) Refute(p Partitioner) { d.refuted[p] = true }

// Decided reports whether more keys can add nothing: at most one function fits n, or if none does, at most one number of
// partitions is left.
func (d *Detector) Decided() bool {
	whole, possible := 0, 0
	for p := range numPartitioners {
		switch {
		case p == Hive && d.fits(String):
		case d.fits(p):
			whole++
		case d.possible(p):
			possible++
		}
	}
	if whole > 0 {
		return whole == 1
	}
	return possible == 0 || possible == 1 && len(d.Candidates()) == 1
}

// Naming is how files are named.
type Naming uint8

const (
	OtherNames Naming = iota // without the number of a partition
	PartNames                // as of Hadoop and Spark
	KafkaNames               // as of Kafka Connect
	HiveNames                // as of Hive's buckets
	AnyNames                 // unknown: all functions are considered
)

// namings are the forms of names with the number of a partition, which is in one of the groups. It has at most nine digits, to fit in 32 bits.
var namings = []struct {
	pattern *regexp.Regexp
	naming  Naming
}{
	// Buckets of Spark's bucketBy: part-<task>-<uuid>_<bucket>.c000.snappy.parquet.
	{regexp.MustCompile(`^part-[0-9]+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}_([0-9]{5,9})(?:\.|$)`), PartNames},
	// Kafka Connect: <topic>+<partition>+<offset>[+<offset>].avro.
	{regexp.MustCompile(`^[A-Za-z0-9._-]+\+([0-9]{1,9})\+[0-9]+(?:\+[0-9]+)?(?:\.|$)`), KafkaNames},
	// Buckets of Hive: 000003_0, 000003_0_copy_1, bucket_00003.
	{regexp.MustCompile(`^(?:bucket_([0-9]{5,9})|([0-9]{5,9})_[0-9]+)(?:_copy_[0-9]+)?(?:\.[a-z.]+)?$`), HiveNames},
	// MapReduce, Spark and Cascading: part-00003, part-r-00003, part-00003-<anything>; the first run of digits counts.
	{regexp.MustCompile(`^part-(?:[A-Za-z]+-)?([0-9]{1,9})(?:[-._]|$)`), PartNames},
}

// FileNumber returns the partition number in a file's name, and how that is named. Directories before the last element do not
// matter; of a MapFile, part-r-00003/data, that is the one before.
func FileNumber(name string) (number int, naming Naming) {
	name = path.Base(strings.TrimSuffix(name, "/data"))
	for _, n := range namings {
		if match := n.pattern.FindStringSubmatch(name); match != nil {
			if number, err := strconv.Atoi(strings.Join(match[1:], "")); err == nil {
				return number, n.naming
			}
		}
	}
	return 0, OtherNames
}

// FileIndex returns the FileNumber of a name. For a name without one it returns position, the file's index among the version's files
// in name order.
func FileIndex(name string, position int) int {
	if i, naming := FileNumber(name); naming != OtherNames {
		return i
	}
	return position
}
