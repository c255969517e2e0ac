package shard

import (
	"encoding/json"
	"os"
	"testing"
)

// vectors are hash codes and partitions computed by Hadoop, Cascading and the
// JDK themselves; see testdata/harness.
type vectors struct {
	Partitions []int
	Keys       []struct {
		Key                   []byte
		StringHashCode        *int32 // absent if the key is not valid UTF-8
		TupleHashCode         *int32
		TextHashCode          int32
		String, Hadoop        []int
		Spark, Cascading      []int
		ByteHash              int32
		BytesWritableHashCode int32
	}
}

func TestVectors(t *testing.T) {
	b, err := os.ReadFile("../testdata/fixtures/_vectors/partitioners.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	checked := 0
	check := func(p Partitioner, key []byte, want []int) {
		for i, n := range v.Partitions {
			if i >= len(want) {
				t.Fatalf("%v: %d partitions for %x, want %d", p, len(want), key, len(v.Partitions))
			}
			if got := p.Partition(key, n); got != want[i] {
				t.Errorf("%v.Partition(%x, %d) = %d, want %d", p, key, n, got, want[i])
			}
			checked++
		}
	}
	for _, k := range v.Keys {
		check(String, k.Key, k.String)
		check(Hadoop, k.Key, k.Hadoop)
		equalHash(t, String, k.Key, k.ByteHash&0x7fffffff)
		equalHash(t, Hadoop, k.Key, k.TextHashCode&0x7fffffff)
		equalHash(t, Hadoop, k.Key, k.BytesWritableHashCode&0x7fffffff)
		if k.StringHashCode != nil {
			check(Spark, k.Key, k.Spark)
			check(Cascading, k.Key, k.Cascading)
			equalHash(t, Spark, k.Key, *k.StringHashCode)
			equalHash(t, Cascading, k.Key, *k.TupleHashCode&0x7fffffff)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d partitions in the file", checked)
	}
}

func equalHash(t *testing.T, p Partitioner, key []byte, want int32) {
	t.Helper()
	if got := p.Hash(key); got != want {
		t.Errorf("%v.Hash(%x) = %d, want %d", p, key, got, want)
	}
}
