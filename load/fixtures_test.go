package load

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"sequins/blocks"
	"sequins/shard"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/harness"
)

// TestFixtures loads what Hadoop, Spark, Cascading and Sparkey have written, and compares every record. The first fixture of each
// format, and those in which the order of files counts, are also loaded as if no function fitted them.
func TestFixtures(t *testing.T) {
	src := check(local.New(harness.FixturesDir(t)))(t)
	formats := map[string]bool{}
	for _, f := range harness.Fixtures(t) {
		partitioners := []string{"auto"}
		if !formats[f.Meta.Format] || f.Meta.Duplicates {
			partitioners = append(partitioners, "string")
		}
		formats[f.Meta.Format] = true
		t.Run(f.Name, func(t *testing.T) {
			for _, partitioner := range partitioners {
				w := newWorld(t)
				opts := Options{Partitioner: partitioner, RequireSuccess: f.Meta.Success, AllowEmpty: f.Meta.Records == 0, Fields: Fields{Key: f.Meta.KeyField, Value: f.Meta.ValueField}}
				var p Progress
				l := newLoader(src, w.store, &p, opts)
				plan := check(l.Plan(t.Context(), f.Name, f.Meta.Version))(t)
				checkPlan(t, f, plan, partitioner)
				expect.NoError(t, l.Load(t.Context(), plan, all(plan)))
				if got := p.Snapshot(); got.Records != int64(f.Meta.Records) || got.Bytes != got.BytesDone || got.FilesDone != int64(f.Meta.Files) {
					t.Errorf("%s: progress %+v", partitioner, got)
				}
				compareFixture(t, f, plan, check(w.store.Dir(f.Name, plan.Manifest().Content().Input))(t))
			}
		})
	}
}

func checkPlan(t *testing.T, f harness.Fixture, plan *Plan, partitioner string) {
	t.Helper()
	var names []string
	for _, file := range plan.Files {
		names = append(names, file.Name)
	}
	if !slices.Equal(names, f.Meta.Names) || plan.Partitions != f.Meta.Partitions {
		t.Errorf("%d partitions of the files %v, want %d of %v", plan.Partitions, names, f.Meta.Partitions, f.Meta.Names)
	}
	want, aligned := shard.String, false
	if partitioner == "auto" && len(f.Meta.Fits) > 0 {
		want, aligned = check(shard.ParsePartitioner(f.Meta.Fits[0]))(t), true
	}
	if plan.Partitioner != want || plan.Aligned != aligned {
		t.Errorf("partitioner %v, aligned %v; want %v, %v", plan.Partitioner, plan.Aligned, want, aligned)
	}
}

func compareFixture(t *testing.T, f harness.Fixture, plan *Plan, dir *store.Dir) {
	t.Helper()
	want := f.Final(t)
	for p := range plan.Partitions {
		r := check(blocks.Open(dir.BlockPath(p)))(t)
		it := r.Iter(nil, nil)
		for it.Next() {
			key := string(it.Key())
			rec, ok := want[key]
			v := it.Value()
			got := check(io.ReadAll(v.Section(0, v.Len())))(t)
			if !ok || !rec.HasValue(got) || plan.Partitioner.Partition(it.Key(), plan.Partitions) != p {
				t.Errorf("partition %d: key %q: %s", p, key, describe(ok, rec, got))
			}
			delete(want, key)
		}
		if err := it.Err(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for key := range want {
		t.Errorf("key %q is missing", key)
	}
}

func describe(expected bool, want harness.Record, got []byte) string {
	if !expected {
		return fmt.Sprintf("unexpected, or twice, with %d bytes", len(got))
	}
	return fmt.Sprintf("a value of %d bytes, want %d", len(got), want.ValueLen)
}
