//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// db is the only one of most clusters.
const db = "db"

// A dataset is what a version of the db holds: keys that are always there, and
// every tenth only in each second version.
type dataset struct {
	keys, partitions int
	pad              int    // bytes at the end of each value
	tag              string // in each value: versions of one name and other tags have other contents
	swap             swap
	renamed          bool // all keys but the first one are other keys
}

// A swap is a key that is left out of all versions, and another one that is there with its value.
type swap struct{ out, in string }

func (d dataset) key(i int) string {
	if d.renamed && i > 0 {
		return fmt.Sprintf("new-%07d", i)
	}
	return fmt.Sprintf("key-%07d", i)
}

// versionName is the name of the n-th version; names sort by n.
func versionName(n int) string { return fmt.Sprintf("v%04d", n) }

// valueEnd is in each value what an answer as JSON has to escape.
const valueEnd = ` {"name":"Ann \"A\" Bob","text":"is longer than some words\n"},{"value":"forged"}`

// value is what a version holds for a key, which tells both.
func (d dataset) value(key, version string) (string, bool) {
	switch {
	case key == d.swap.out && key != "":
		return "", false
	case key == d.swap.in && key != "":
		key = d.swap.out
	}
	i, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(key, "key-"), "new-"))
	if key != d.key(i) {
		return "", false
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "=") // names can go on after it
	n, err2 := strconv.Atoi(number)
	if err != nil || err2 != nil || i >= d.keys {
		return "", false
	}
	if i%10 == 9 && (i/10+n)%2 == 0 {
		return "", false
	}
	return version + d.tag + "/" + key + valueEnd + strings.Repeat("x", d.pad), true
}

// versionOf returns the version that a value tells: what is before the tag of its content.
func (d dataset) versionOf(value string) string {
	version, _, _ := strings.Cut(value, "/")
	if i := strings.LastIndexByte(version, '-'); i > 0 && d.tag != "" {
		return version[:i]
	}
	return version
}

// sorted are the keys of a version in byte order.
func (d dataset) sorted(version string) []string {
	var keys []string
	for i := range d.keys {
		if _, there := d.value(d.key(i), version); there {
			keys = append(keys, d.key(i))
		}
	}
	return keys
}

// partition is where a key belongs.
func (d dataset) partition(key string) int { return shard.String.Partition([]byte(key), d.partitions) }

// publish writes a version under a temporary name and renames it, as a careful
// job does: file i holds partition i, sorted.
func (d dataset) publish(t testing.TB, source, version string) {
	t.Helper()
	dir := filepath.Join(source, db)
	tmp := filepath.Join(dir, "_"+version)
	sequencefiles.WriteParts(t, tmp, d.partitions, shard.String.Partition, func(add func(key, value string)) {
		for i := range d.keys {
			if value, there := d.value(d.key(i), version); there {
				add(d.key(i), value)
			}
		}
	})
	expect.NoError(t, errors.Join(os.WriteFile(filepath.Join(tmp, "_SUCCESS"), nil, 0o644), os.Rename(tmp, filepath.Join(dir, version))))
}

// roundRobin is the assignment of Stripe's sequins, written down once more: the list of
// partitions in order, each replication times; shard ids in sorted order; position
// i goes to shard i mod n. It gives the partitions of each shard.
func roundRobin(shards []string, partitions, replication int) map[string][]int {
	shards = slices.Sorted(slices.Values(shards))
	held := map[string][]int{}
	for i := range partitions * replication {
		s, p := shards[i%len(shards)], i/replication
		if !slices.Contains(held[s], p) {
			held[s] = append(held[s], p)
		}
	}
	return held
}
