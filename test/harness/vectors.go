package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Vectors are hash codes and partitions of many keys, computed by classes of Java, Hadoop and Cascading.
type Vectors struct {
	Partitions []int    `json:"partitions"` // numbers of partitions
	Keys       []Vector `json:"keys"`
}

// Vector is one key. The fields of String, and of types that contain one, are nil if the key is not valid UTF-8.
type Vector struct {
	Key                   []byte `json:"key"`
	ByteHash              int32  `json:"byteHash"` // String.hashCode's formula over unsigned bytes
	TextHashCode          int32  `json:"textHashCode"`
	BytesWritableHashCode int32  `json:"bytesWritableHashCode"`
	StringHashCode        *int32 `json:"stringHashCode"`
	TupleHashCode         *int32 `json:"tupleHashCode"` // of a Cascading tuple of one String

	// The partition by each function, for each of Vectors.Partitions.
	String    []int `json:"string"`
	Hadoop    []int `json:"hadoop"`
	Spark     []int `json:"spark"`
	Cascading []int `json:"cascading"`
}

// PartitionerVectors returns the content of testdata/fixtures/_vectors/partitioners.json.
func PartitionerVectors(t testing.TB) Vectors {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(FixturesDir(t), "_vectors", "partitioners.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v Vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("harness: partitioners.json: %v", err)
	}
	if len(v.Keys) == 0 || len(v.Partitions) == 0 {
		t.Fatal("harness: partitioners.json is empty")
	}
	return v
}
