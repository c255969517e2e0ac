package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSizes(t *testing.T) {
	for in, want := range map[string]Size{
		"0": 0, "17": 17, "17B": 17, " 3 kb ": 3000, "3KiB": 3072, "256MB": 256e6, "256MiB": 256 << 20,
		"2gb": 2e9, "2GIB": 2 << 30, "1TB": 1e12, "1TiB": 1 << 40, "-5MB": -5e6,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "B", "MB", "1.5GB", "1 2", "1XB", "0x10", "9223372036854775808", "8388608TiB", "-9000000TiB"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q was taken for %d", in, got)
		}
	}
	for size, want := range map[Size]string{0: "0B", 1000: "1000B", 1024: "1KiB", 256 << 20: "256MiB", 3 << 40: "3TiB", 1<<30 + 1: "1073741825B"} {
		if got := size.String(); got != want {
			t.Errorf("%d is written %s, want %s", int64(size), got, want)
		}
		if back, err := ParseSize(want); err != nil || back != size {
			t.Errorf("%s reads back as %d, %v", want, back, err)
		}
	}
}

func TestReloaded(t *testing.T) {
	from := Default()
	to := from
	to.RefreshPeriod = time.Hour
	to.Bind = ":1"
	to.Storage.Compression = "zstd"
	to.ZK.Servers = []string{"a:1"}
	to.DB = map[string]DB{"x": {KeepVersions: 5}}
	next, changed, left := Reloaded(from, to)
	if diff := cmp.Diff([][]string{{"refresh_period", "storage.compression", "db"}, {"bind", "zk.servers"}}, [][]string{changed, left}); diff != "" {
		t.Errorf("keys that change, and that do not (-want +got):\n%s", diff)
	}
	if next.RefreshPeriod != time.Hour || next.Storage.Compression != "zstd" || next.DB == nil || next.Bind != from.Bind {
		t.Errorf("%+v", next)
	}
	if _, changed, left := Reloaded(from, Default()); len(changed)+len(left) > 0 {
		t.Errorf("changes from the defaults to the defaults: %v, %v", changed, left)
	}
	if diff := cmp.Diff(Default(), from); diff != "" {
		t.Errorf("reloading changed its input:\n%s", diff)
	}
}

// fileKeys returns the keys whose value can be in a file.
func fileKeys() (names []string) {
	for _, k := range keys() {
		if k.hasFile() {
			names = append(names, k.key)
		}
	}
	return names
}
