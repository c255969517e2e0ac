package shard

import (
	"encoding/binary"
	"fmt"
	"strings"
)

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
	// Murmur3 is how Spark partitions DataFrames by a column of strings, in repartition(n, col), and buckets of
	// bucketBy: Spark's Murmur3 with the seed 42 over the UTF-8 bytes, and the
	// non-negative remainder. Murmur3Int and Murmur3Long are the same for columns of int and of long (bigint).
	Murmur3
	Murmur3Int
	Murmur3Long
	// Kafka is the default partitioner of Kafka's producers: murmur2 of the bytes of the key, without the sign bit, mod N.
	Kafka
	// Hive is the hash of Hive's buckets in tables of bucketing_version 1: for strings h = 31h + b over signed bytes from 0, for
	// int the number, for bigint its halves combined by exclusive or; all without the sign bit, mod N.
	Hive
	HiveInt
	HiveLong
	// HiveMurmur3 is the hash of Hive's buckets in tables of bucketing_version 2, the default since Hive 3: Murmur3 with the seed
	// 104729 over the bytes of the string, or the big-endian bytes of the number, without the sign bit, mod N.
	HiveMurmur3
	HiveMurmur3Int
	HiveMurmur3Long

	numPartitioners
)

var names = [numPartitioners]string{
	String:    "string",
	Hadoop:    "hadoop",
	Spark:     "spark",
	Cascading: "cascading",

	Murmur3:     "murmur3",
	Murmur3Int:  "murmur3-int",
	Murmur3Long: "murmur3-long",

	Kafka: "kafka",

	Hive:     "hive",
	HiveInt:  "hive-int",
	HiveLong: "hive-long",

	HiveMurmur3:     "hive-murmur3",
	HiveMurmur3Int:  "hive-murmur3-int",
	HiveMurmur3Long: "hive-murmur3-long",
}

// Partitioners returns every known partitioner, in order of preference.
func Partitioners() []Partitioner {
	all := make([]Partitioner, numPartitioners)
	for i := range all {
		all[i] = Partitioner(i)
	}
	return all
}

// ParsePartitioner returns a partitioner by its name in configuration and
// manifests.
func ParsePartitioner(name string) (Partitioner, error) {
	for p, n := range names {
		if n == name {
			return Partitioner(p), nil
		}
	}
	return 0, fmt.Errorf("unknown partitioner %q: want one of %s", name, strings.Join(names[:], ", "))
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
// negative, except for Spark and the functions of Murmur3 of Spark, which keep the sign. The functions of numbers take keys
// that are no such number in decimal for strings: no record has such a key. An unknown Partitioner hashes like String.
func (p Partitioner) Hash(key []byte) int32 {
	switch p {
	case Hadoop:
		return int32(hashSigned(1, key) & 0x7fffffff)
	case Spark:
		return int32(hashUTF16(key))
	case Cascading:
		return int32((31 + hashUTF16(key)) & 0x7fffffff)
	case Murmur3, Murmur3Int, Murmur3Long:
		return int32(p.hashOfSpark(key))
	case Kafka:
		return int32(murmur2(key) & 0x7fffffff)
	case Hive, HiveInt, HiveLong, HiveMurmur3, HiveMurmur3Int, HiveMurmur3Long:
		return int32(p.hashOfHive(key) & 0x7fffffff)
	default:
		return int32(hashUnsigned(key) & 0x7fffffff)
	}
}

func (p Partitioner) hashOfSpark(key []byte) uint32 {
	switch v, ok := parseNumber(key, p.bits()); {
	case !ok:
		return murmur3Spark(key)
	case p == Murmur3Int:
		return murmur3Int(int32(v))
	default:
		return murmur3Long(v)
	}
}

func (p Partitioner) hashOfHive(key []byte) uint32 {
	v, ok := parseNumber(key, p.bits())
	var b [8]byte
	switch {
	case p == HiveInt && ok:
		return uint32(v)
	case p == HiveLong && ok:
		return uint32(uint64(v)>>32) ^ uint32(v)
	case p == HiveMurmur3Int && ok:
		return murmur3Hive(binary.BigEndian.AppendUint32(b[:0], uint32(v)))
	case p == HiveMurmur3Long && ok:
		return murmur3Hive(binary.BigEndian.AppendUint64(b[:0], uint64(v)))
	case p == Hive || p == HiveInt || p == HiveLong:
		return hashSigned(0, key)
	default:
		return murmur3Hive(key)
	}
}

// bits returns the size of the numbers that p hashes, and 0 if it hashes strings.
func (p Partitioner) bits() int {
	switch p {
	case Murmur3Int, HiveInt, HiveMurmur3Int:
		return 32
	case Murmur3Long, HiveLong, HiveMurmur3Long:
		return 64
	}
	return 0
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
