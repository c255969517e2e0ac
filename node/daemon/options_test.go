package daemon

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sequins/blocks"
	"sequins/config"
	"sequins/server"
	"sequins/shard"
	"sequins/test/expect"
)

// Requests ask for the settings of a database, also for each value while two versions are read in turn: nothing is parsed then, and no zone is
// read from the disk.
func TestSettingsOfDatabasesAreMadeOnce(t *testing.T) {
	c := config.Default()
	c.Load.Window, c.Gate.RequiredKeys = "22:00-06:00 Europe/Paris", map[string]string{"apple": "^[0-9]+$"}
	own := c.ForDB("words")
	own.ContentType, own.LoadWindow = "text/plain", "01:00-02:00 Asia/Tokyo"
	c.DB = map[string]config.DB{"words": own}
	r := reloadable(c)
	for name, want := range map[string]string{"words": "text/plain 01:00-02:00 Asia/Tokyo", "other": c.ContentType + " 22:00-06:00 Europe/Paris"} {
		db := r.DB(name)
		if got := fmt.Sprint(db.ContentType, " ", db.Turn.Windows); got != want || len(db.Gate.Required) != 1 {
			t.Errorf("%s: %s, %v; want %s", name, got, db.Gate, want)
		}
		if n := testing.AllocsPerRun(10, func() { r.DB(name) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// wordsOf returns the valid words of a field of the configuration.
func wordsOf(table any, field string) []string {
	f, _ := reflect.TypeOf(table).FieldByName(field)
	return strings.Fields(f.Tag.Get("oneof"))
}

// The words and limits that the configuration accepts are those of the packages that they go to.
func TestConfigurationAgreesWithWhatItIsFor(t *testing.T) {
	for _, name := range wordsOf(config.Storage{}, "Compression") {
		if c, err := blocks.ParseCompression(name); err != nil || c.String() != name && !(name == "snappy" && c == blocks.FSST) {
			t.Errorf("compression %s: %v, %v", name, c, err)
		}
	}
	if !slices.Equal(wordsOf(config.HTTP{}, "Compression"), server.Codings) {
		t.Errorf("codings %v, and of the server %v", wordsOf(config.HTTP{}, "Compression"), server.Codings)
	}
	for _, name := range wordsOf(config.Config{}, "Partitioner") {
		if p, err := shard.ParsePartitioner(name); name != "auto" && (err != nil || p.String() != name) {
			t.Errorf("partitioner %s: %v, %v", name, p, err)
		}
	}
	small := config.Default()
	small.Source, small.Storage.BlockSize = "/d", blocks.MinBlockSize-1
	if small.Validate() == nil {
		t.Error("blocks are smaller than blocks allows")
	}
	if small.Storage.BlockSize++; small.Validate() != nil || config.MaxBlockSize != blocks.MaxBlockSize || config.Default().Storage.BlockSize != blocks.DefaultBlockSize {
		t.Error("the limits of block_size differ from those of blocks")
	}
	c := config.Default()
	c.DB = map[string]config.DB{"x": {RequireSuccessFile: config.RequireTrue, Partitioner: "spark", AllowEmpty: true}}
	c.Storage = config.Storage{Compression: "zstd", BlockSize: 512}
	x, other := LoadOptions(&c, "x"), LoadOptions(&c, "other")
	if x.Compression != blocks.Zstd || x.BlockSize != 512 || !x.RequireSuccess || !x.AllowEmpty || x.Partitioner != "spark" || x.Memory != 256<<20 {
		t.Errorf("options of a database of its own: %+v", x)
	}
	if other.Compression != blocks.Zstd || other.BlockSize != 512 || other.RequireSuccess || other.AllowEmpty || other.Partitioner != "auto" {
		t.Errorf("options of any other database: %+v", other)
	}
}

// Connections leave half of the file descriptors to others unless their limit is configured.
func TestMaxConnections(t *testing.T) {
	var limit syscall.Rlimit
	expect.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if got := maxConnections(0); got <= 0 || got > int(limit.Cur/2) {
		t.Errorf("%d connections of %d descriptors", got, limit.Cur)
	}
	if got := maxConnections(7); got != 7 {
		t.Errorf("%d connections, 7 are configured", got)
	}
}
