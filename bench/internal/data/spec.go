// Package data makes the records that the benchmarks run on and keeps the files built from them.
//
// A record is a function of its number alone, so that every contender gets the same ones, every run
// the same again, and every answer can be checked without a copy of the data: [Spec.Key] and
// [Spec.Value] give the record of a number, [Spec.Absent] a key beside it that no record has, and
// [Spec.Each] all records in the order of their keys. Files made from them are kept in a [Cache].
package data

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// Spec says which records there are.
type Spec struct {
	Records   int    // numbered from 0
	ValueSize int    // bytes
	Keys      string // how keys look: "hex", 16 random hex digits, or "user", "user:" and 12 ascending digits
}

// Check returns an error if the spec is invalid.
func (s Spec) Check() error {
	if s.Keys != "hex" && s.Keys != "user" {
		return fmt.Errorf("keys %q: want hex or user", s.Keys)
	}
	if s.Records < 1 || s.Records > 1<<31 || s.ValueSize < 1 {
		return fmt.Errorf("%d records with values of %d bytes: out of range", s.Records, s.ValueSize)
	}
	return nil
}

// String names the spec, for files and tables.
func (s Spec) String() string { return fmt.Sprintf("%d-%s-%d", s.Records, s.Keys, s.ValueSize) }

// RecordSize is the length of a key with its value.
func (s Spec) RecordSize() int { return len(s.Key(nil, 0)) + s.ValueSize }

// Size is the length of all keys and values.
func (s Spec) Size() int64 { return int64(s.Records) * int64(s.RecordSize()) }

// Key appends the key of record i to dst.
func (s Spec) Key(dst []byte, i int) []byte { return s.key(dst, 2*uint64(i)) }

// Absent appends a key that no record has, and that lies among those of the records.
func (s Spec) Absent(dst []byte, i int) []byte { return s.key(dst, 2*uint64(i)+1) }

func (s Spec) key(dst []byte, n uint64) []byte {
	if s.Keys == "user" {
		return fmt.Appendf(dst, "user:%012d", n)
	}
	return fmt.Appendf(dst, "%016x", mix(n))
}

// mix spreads numbers evenly and gives no two of them the same result (the finaliser of splitmix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func appendRandom(dst []byte, n uint64, digits int) []byte {
	for i := range digits {
		if i%10 == 0 {
			n = mix(n ^ 0x64696769)
		}
		dst = append(dst, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[n>>(6*(i%10))&63])
	}
	return dst
}

// field is one part of a value: a name that is the same in every value, and the data after it.
type field struct {
	name   string
	digits int // random characters of 64; 0 for a word of the vocabulary
}

// Values look like what jobs write: the same names in each, words that return, and identifiers and
// measurements that do not. The lengths are chosen so that pages of 4 KiB shrink as those of real feature
// stores do: with values of 100 bytes snappy leaves about 3/4, fsst 2/3, zstd about 3/5.
var fields = []field{
	{`{"id":"`, 16}, {`","segment":"`, 0}, {`","embedding":"`, 22}, {`","next":"`, 8}, {`"}`, 0},
}

// vocabulary is the words, the first ones chosen far more often than the last.
var vocabulary = makeVocabulary()

func makeVocabulary() []string {
	words := make([]string, 1024)
	for i := range words {
		n := mix(uint64(i) ^ 0x766f63)
		var w []byte
		for range 4 + n%5 {
			n = mix(n)
			w = append(w, "etaoinshrdlucmfw"[n&15])
		}
		words[i] = string(w)
	}
	return words
}

// largeValue is the length in bytes above which values are random characters, like images, without anything that returns.
const largeValue = 64 << 10

// Value appends the value of record i to dst.
func (s Spec) Value(dst []byte, i int) []byte {
	end := len(dst) + s.ValueSize
	n := mix(uint64(i) ^ 0x76616c7565)
	if s.ValueSize > largeValue {
		return appendRandom(dst, n, s.ValueSize)
	}
	for f := 0; len(dst) < end; f++ {
		part := fields[f%len(fields)]
		dst = append(dst, part.name...)
		n = mix(n)
		if part.digits > 0 {
			dst = appendRandom(dst, n, part.digits)
		} else {
			dst = append(dst, vocabulary[n%1024*(n>>10%1024)>>10]...)
		}
	}
	return dst[:end]
}

var orders sync.Map // of Spec: its Order

// Order returns the numbers of all records in the order of their keys. The slice is kept and shared.
func (s Spec) Order() []uint32 {
	if o, ok := orders.Load(s); ok {
		return o.([]uint32)
	}
	order := make([]uint32, s.Records)
	for i := range order {
		order[i] = uint32(i)
	}
	if s.Keys == "hex" {
		slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(mix(2*uint64(a)), mix(2*uint64(b))) })
	}
	orders.Store(s, order)
	return order
}

// Each calls do for all records in the order of their keys. The slices are used again for the next record.
func (s Spec) Each(do func(key, value []byte) error) error {
	var key, value []byte
	for _, i := range s.Order() {
		key, value = s.Key(key[:0], int(i)), s.Value(value[:0], int(i))
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

// Verify returns an error if an answer for record i is wrong.
func (s Spec) Verify(i int, value []byte, found bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("record %d: %w", i, err)
	case !found:
		return fmt.Errorf("record %d: not found", i)
	case !bytes.Equal(value, s.Value(nil, i)):
		return fmt.Errorf("record %d: wrong value %s", i, strconv.Quote(string(value[:min(len(value), 100)])))
	}
	return nil
}
