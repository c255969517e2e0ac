//go:build integration

package harness

import (
	"slices"
	"testing"

	"sequins/shard"
)

func TestPartitionersAgreeWithJava(t *testing.T) {
	v := PartitionerVectors(t)
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
		fits := map[string]bool{}
		for _, p := range []shard.Partitioner{shard.String, shard.Hadoop, shard.Spark, shard.Cascading} {
			fits[p.String()] = true
			for r := range f.Records(t) {
				perPartition := f.Meta.Files / f.Meta.Partitions
				if p.Partition(r.Key, f.Meta.Partitions) != slices.Index(f.Meta.Names, r.File)/perPartition {
					fits[p.String()] = false
					break
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
