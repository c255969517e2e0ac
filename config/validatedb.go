package config

import (
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
)

// maxRequired limits the keys of required_keys. Each of them is looked up in each version.
const maxRequired = 1000

// gate checks [gate] or [db.<name>.gate].
func (k *checker) gate(key string, g *Gate) {
	k.atLeast(key+".min_records", int64(g.MinRecords), 0)
	k.fraction(key+".max_shrink", g.MaxShrink, 1)
	k.fraction(key+".max_growth", g.MaxGrowth, math.MaxFloat64)
	k.fraction(key+".max_missing", g.MaxMissing, 1)
	k.atLeast(key+".max_value_size", int64(g.MaxValueSize), 0)
	k.atLeast(key+".max_record_errors", int64(g.MaxRecordErrors), 0)
	k.gateEffects(key, g)
	if len(g.RequiredKeys) > maxRequired {
		k.problem(key+".required_keys", "%d keys, more than %d", len(g.RequiredKeys), maxRequired)
	}
	for _, name := range slices.Sorted(maps.Keys(g.RequiredKeys)) {
		if _, err := regexp.Compile(g.RequiredKeys[name]); err != nil {
			k.problem(join(key+".required_keys", name), "is not a regular expression: %v", err)
		}
	}
}

// fraction checks a number from 0 up to most.
func (k *checker) fraction(key string, v, most float64) {
	if !(v >= 0 && v <= most) { // also NaN
		k.problem(key, "must be a fraction such as 0.2, from 0 to %g, not %v", most, v)
	}
}

// maxPartitions is shard.MaxPartitions.
const maxPartitions = 1 << 16

// db checks the values of [db.<name>] that differ from those for all databases.
func (k *checker) db(key, name string, db, all DB) {
	if len(name) > maxDBName || !dbName.MatchString(name) || slices.Contains([]string{"healthz", "livez", "readyz"}, name) {
		k.problem(key, "%q cannot be the name of a database", name)
	}
	if db.ContentType != all.ContentType {
		k.header(key+".content_type", db.ContentType)
	}
	if db.CacheControl != all.CacheControl {
		k.cacheControl(key+".cache_control", db.CacheControl)
	}
	if db.Partitioner != all.Partitioner {
		k.oneOf(key+".partitioner", db.Partitioner, Partitioners)
	}
	if db.Partitions < 0 || db.Partitions > maxPartitions {
		k.problem(key+".partitions", "must be from 0 to %d, not %d", maxPartitions, db.Partitions)
	}
	if db.KeepVersions != all.KeepVersions {
		k.atLeast(key+".keep_versions", int64(db.KeepVersions), 1)
	}
	if db.LoadWindow != all.LoadWindow {
		k.windows(key+".load_window", db.LoadWindow)
	}
	if !reflect.DeepEqual(db.Gate, all.Gate) {
		k.gate(key+".gate", &db.Gate)
	}
	if db.Value != "" && db.Key == "" {
		k.problem(key+".value", "is set, and key is not")
	}
	if db.PartitionColumns && db.Key == "" {
		k.problem(key+".partition_columns", "is set, and key is not: it is for Avro and Parquet files")
	}
	if db.PartitionColumns && db.Value != "" {
		k.problem(key+".partition_columns", "adds fields to whole records, and value is %q: leave one of them out", db.Value)
	}
}
