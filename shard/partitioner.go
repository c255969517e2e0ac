package shard

import "fmt"

// MaxPartitions is the maximum number of partitions of a version. It is more than ZooKeeper and file
// systems handle well.
const MaxPartitions = 1 << 16

// Partitioner is a function by which jobs partition keys into N files. If several
// functions match the same data, the smallest value is chosen.
type Partitioner uint8

const (
	// String is the default: h = 31h + b over the unsigned bytes from 0, without
	// the sign bit, mod N. For ASCII keys h is Java's String.hashCode, so it
	// matches MapReduce's HashPartitioner for a key type that hashes like String.
	String Partitioner = iota
	// Hadoop is HashPartitioner on Text and BytesWritable, whose hashCode is
	// WritableComparator.hashBytes: h = 31h + b over signed bytes from 1.
	Hadoop
	// Spark is Spark's HashPartitioner on String keys: String.hashCode over
	// UTF-16 units, and the non-negative remainder of the signed hash.
	Spark
	// Cascading is the partitioner of Cascading and Scalding on tuples of one
	// String: 31 + String.hashCode, without the sign bit, mod N.
	Cascading

	numPartitioners
)

var names = [numPartitioners]string{
	String:    "string",
	Hadoop:    "hadoop",
	Spark:     "spark",
	Cascading: "cascading",
}

// Partitioners returns every known partitioner, in order of preference.
func Partitioners() []Partitioner {
	return []Partitioner{String, Hadoop, Spark, Cascading}
}

// ParsePartitioner returns a partitioner by its name in configuration and
// manifests.
func ParsePartitioner(name string) (Partitioner, error) {
	for p, n := range names {
		if n == name {
			return Partitioner(p), nil
		}
	}
	return 0, fmt.Errorf("unknown partitioner %q: want string, hadoop, spark or cascading", name)
}

// String returns the name accepted by ParsePartitioner.
func (p Partitioner) String() string {
	if p < numPartitioners {
		return names[p]
	}
	return fmt.Sprintf("partitioner(%d)", uint8(p))
}

// MarshalText implements encoding.TextMarshaler with the name of p.
func (p Partitioner) MarshalText() ([]byte, error) {
	if p >= numPartitioners {
		return nil, fmt.Errorf("%v has no name", p)
	}
	return []byte(names[p]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Partitioner) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePartitioner(string(text))
	return err
}

// Hash returns the number that is divided by the number of partitions: not
// negative, except for Spark, which keeps the sign. An unknown Partitioner hashes
// like String.
func (p Partitioner) Hash(key []byte) int32 {
	switch p {
	case Hadoop:
		return int32(hashSigned(key) & 0x7fffffff)
	case Spark:
		return int32(hashUTF16(key))
	case Cascading:
		return int32((31 + hashUTF16(key)) & 0x7fffffff)
	default:
		return int32(hashUnsigned(key) & 0x7fffffff)
	}
}

// Partition returns the partition of key, 0 ≤ partition < n, or 0 if n < 2. It
// does not allocate.
func (p Partitioner) Partition(key []byte, n int) int {
	if n <= 1 {
		return 0
	}
	h := p.Hash(key)
	if h >= 0 && uint64(n) <= 1<<31 {
		return int(uint32(h) % uint32(n)) // 32-bit division is much faster
	}
	r := int64(h) % int64(n)
	if r < 0 {
		r += int64(n)
	}
	return int(r)
}
