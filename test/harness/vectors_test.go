//go:build integration

package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
)

// The partitions of many keys are those that classes of Java, Hadoop and Cascading have computed.
func TestPartitionersAgreeWithJava(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(FixturesDir(t), "_vectors", "partitioners.json"))
	expect.NoError(t, err)
	var v struct {
		Partitions []int // numbers of partitions
		Keys       []struct {
			Key                              []byte
			StringHashCode                   *int32 // nil, as Spark and Cascading, if the key is not valid UTF-8
			String, Hadoop, Spark, Cascading []int  // the partition by each function, for each of Partitions
		}
	}
	if err := json.Unmarshal(raw, &v); err != nil || len(v.Keys) == 0 || len(v.Partitions) == 0 {
		t.Fatalf("partitioners.json: %d keys, %d numbers of partitions, %v", len(v.Keys), len(v.Partitions), err)
	}
	for _, k := range v.Keys {
		want := map[shard.Partitioner][]int{shard.String: k.String, shard.Hadoop: k.Hadoop, shard.Spark: k.Spark, shard.Cascading: k.Cascading}
		for p, parts := range want {
			if parts == nil && k.StringHashCode == nil && (p == shard.Spark || p == shard.Cascading) {
				continue // no Java String has these bytes
			}
			got := make([]int, len(v.Partitions))
			for i, n := range v.Partitions {
				got[i] = p.Partition(k.Key, n)
			}
			if !slices.Equal(got, parts) {
				t.Errorf("%v of %.40q: %v, want %v", p, k.Key, got, parts)
			}
		}
	}
}

// Our partitioners give the same partitions as the jobs, and match exactly the fixtures that the Java program lists.
func TestFixturesAreCutAsTheySay(t *testing.T) {
	for _, f := range Fixtures(t) {
		partitioners := []shard.Partitioner{shard.String, shard.Hadoop, shard.Spark, shard.Cascading}
		fits := map[string]bool{}
		for _, p := range partitioners {
			fits[p.String()] = true
		}
		for r := range f.Records(t) {
			file := slices.Index(f.Meta.Names, r.File) / (f.Meta.Files / f.Meta.Partitions)
			for _, p := range partitioners {
				if p.Partition(r.Key, f.Meta.Partitions) != file {
					fits[p.String()] = false
				}
			}
		}
		for p, fit := range fits {
			if fit != slices.Contains(f.Meta.Fits, p) {
				t.Errorf("%s: %s fits: %v, but meta says %v", f.Name, p, fit, f.Meta.Fits)
			}
		}
	}
}
