package build_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/input/finished"
	"sequins/load"
	"sequins/load/build"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
	"sequins/test/blocktest"
	"sequins/test/expect"
	"sequins/test/speed"
)

// damage flips a byte of a file of a version.
func damage(t testing.TB, to build.Place, name string, at int) {
	t.Helper()
	path := filepath.Join(to.String(), name)
	data := must(os.ReadFile(path))(t)
	data[at] ^= byte(1 + rand.IntN(255))
	expect.NoError(t, os.WriteFile(path, data, 0o644))
}

// A changed byte anywhere in a block or in the manifest is an error, and the block is not published. Without its last brace, the manifest
// looks like one that is being copied.
func TestFlippedBytes(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(500))
	to, m := run(t, place(t, root), load.Options{Compression: blocks.FSST})
	for round := range 80 {
		name := []string{m.Blocks[1].Name, "_BLOCKS.json"}[round%2]
		path := filepath.Join(to.String(), name)
		good := must(os.ReadFile(path))(t)
		at := rand.IntN(len(good))
		damage(t, to, name, at)
		got, err := into(t, to, load.Options{}, 1)
		cut := errors.Is(err, load.ErrIncomplete) && name == "_BLOCKS.json" && strings.Contains(err.Error(), "truncated")
		if !cut && !errors.Is(err, finished.ErrCorrupt) && !errors.Is(err, finished.ErrFormat) || !strings.Contains(err.Error(), name) {
			t.Fatalf("%s, byte %d: %v", name, at, err)
		}
		if name != "_BLOCKS.json" && !load.Faulty(err) {
			t.Errorf("%v is not the version's fault", err)
		}
		if got != nil {
			if published := must(got.dir.Complete())(t); len(published) != 0 {
				t.Fatalf("%s, byte %d: published %v", name, at, published)
			}
		}
		expect.NoError(t, os.WriteFile(path, good, 0o644))
	}
	must(into(t, to, load.Options{}))(t)
}

// flip inverts a bit of a file of a version.
func flip(t testing.TB, to build.Place, name string, at int) {
	t.Helper()
	path := filepath.Join(to.String(), name)
	data := must(os.ReadFile(path))(t)
	data[at] ^= 0x10
	expect.NoError(t, os.WriteFile(path, data, 0o644))
}

// A flipped bit in each part of a block is found, and so is another content's block, of the same size, under the right name.
func TestAnotherBlock(t *testing.T) {
	root, another := t.TempDir(), t.TempDir()
	records := some(500)
	write(t, root, shard.Hadoop, 2, records)
	for key, value := range records {
		records[key] = strings.Replace(value, "value", "VALUE", 1)
	}
	write(t, another, shard.Hadoop, 2, records)
	o := load.Options{Compression: blocks.FSST}
	to, m := run(t, place(t, root), o)
	name := m.Blocks[1].Name
	refused := func(what, why string) {
		t.Helper()
		got, err := into(t, to, load.Options{}, 1)
		if !errors.Is(err, finished.ErrCorrupt) || !load.Faulty(err) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", what, err)
		}
		if strings.Contains(err.Error(), ".tmp") {
			t.Errorf("%s: a file is named that is removed: %v", what, err)
		}
		if published := must(got.dir.Complete())(t); len(published) != 0 {
			t.Errorf("%s: published %v", what, published)
		}
	}
	for part, at := range blocktest.Sections(must(os.ReadFile(filepath.Join(to.String(), name)))(t)) {
		flip(t, to, name, at)
		refused(part, "offset")
		flip(t, to, name, at)
	}
	must(into(t, to, load.Options{}))(t)

	from, was := run(t, place(t, another), o)
	if was.Blocks[1].Size != m.Blocks[1].Size {
		t.Fatalf("blocks of %d and %d bytes", was.Blocks[1].Size, m.Blocks[1].Size)
	}
	expect.NoError(t, os.Rename(filepath.Join(from.String(), name), filepath.Join(to.String(), name)))
	refused("another content's block", "it has the hash "+was.Blocks[1].Hash)
}

// A manifest that lies is not believed, though its checksum is right.
func TestHostileManifest(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 3, some(500))
	to, m := run(t, place(t, root), load.Options{})
	good := must(m.Encode())(t)
	for name, change := range map[string]func(*testing.T, *finished.Manifest){
		"size":        func(t *testing.T, m *finished.Manifest) { m.Blocks[1].Size-- },
		"hash":        func(t *testing.T, m *finished.Manifest) { m.Blocks[1].Hash = strings.Repeat("0", 32) },
		"records":     func(t *testing.T, m *finished.Manifest) { m.Blocks[1].Records++ },
		"partitioner": func(t *testing.T, m *finished.Manifest) { m.Partitioner = "string" },
		"swapped": func(t *testing.T, m *finished.Manifest) {
			a, b := &m.Blocks[0], &m.Blocks[1]
			a.Hash, b.Hash, a.Size, b.Size, a.Records, b.Records = b.Hash, a.Hash, b.Size, a.Size, b.Records, a.Records
			from, to := to.String()+"/"+a.Name, to.String()+"/"+b.Name
			x, y := must(os.ReadFile(from))(t), must(os.ReadFile(to))(t)
			t.Cleanup(func() { _ = errors.Join(os.WriteFile(from, x, 0o644), os.WriteFile(to, y, 0o644)) })
			expect.NoError(t, errors.Join(os.WriteFile(from, y, 0o644), os.WriteFile(to, x, 0o644)))
		},
		"fewer": func(t *testing.T, m *finished.Manifest) { m.Partitions, m.Blocks = 2, m.Blocks[:2] },
		"partition": func(t *testing.T, m *finished.Manifest) {
			*m = *must(finished.Parse(good, ""))(t)
			m.Blocks[2].Name = m.Blocks[1].Name
		},
	} {
		t.Run(name, func(t *testing.T) {
			lie := must(finished.Parse(good, ""))(t)
			change(t, lie)
			if data, err := lie.Encode(); err == nil {
				expect.NoError(t, os.WriteFile(to.String()+"/_BLOCKS.json", data, 0o644))
				if _, err := into(t, to, load.Options{}); !errors.Is(err, finished.ErrCorrupt) {
					t.Errorf("got %v", err)
				}
			}
		})
		writeManifest(t, to, m)
	}
	must(into(t, to, load.Options{}))(t)
}

func TestFiles(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 3, some(500))
	from := place(t, root)
	for name, tt := range map[string]struct {
		change func(dir string) error
		want   error
	}{
		"truncated":      {func(dir string) error { return os.Truncate(dir+"/part-00001.block", 200) }, load.ErrIncomplete},
		"empty":          {func(dir string) error { return os.Truncate(dir+"/part-00001.block", 0) }, load.ErrIncomplete},
		"missing":        {func(dir string) error { return os.Remove(dir + "/part-00001.block") }, load.ErrIncomplete},
		"more":           {func(dir string) error { return os.WriteFile(dir+"/part-00003.block", nil, 0o644) }, finished.ErrCorrupt},
		"mixed":          {func(dir string) error { return os.WriteFile(dir+"/part-00003", nil, 0o644) }, load.ErrMixed},
		"no manifest":    {func(dir string) error { return os.Remove(dir + "/_BLOCKS.json") }, load.ErrIncomplete},
		"empty manifest": {func(dir string) error { return os.Truncate(dir+"/_BLOCKS.json", 0) }, load.ErrIncomplete},
		"huge manifest":  {func(dir string) error { return os.Truncate(dir+"/_BLOCKS.json", finished.MaxSize+1) }, finished.ErrCorrupt},
		"a directory": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/_BLOCKS.json"), os.Mkdir(dir+"/_BLOCKS.json", 0o755))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			to, _ := run(t, from, load.Options{})
			expect.NoError(t, tt.change(to.String()))
			if _, err := into(t, to, load.Options{}); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A block or a manifest that changes after the plan is not published.
func TestChangedWhileLoading(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(500))
	for _, name := range []string{"part-00001.block", "_BLOCKS.json"} {
		to, m := run(t, place(t, root), load.Options{})
		s := must(store.Open(t.TempDir()))(t)
		defer s.Close()
		l := load.New(to.Source, nil, load.Options{})
		plan := must(l.Plan(t.Context(), "db", "1"))(t)
		m.Release = "another"
		if writeManifest(t, to, m); name != "_BLOCKS.json" {
			damage(t, to, name, 10)
		}
		if err := speed.Load(t.Context(), l, s, plan, []int{0, 1}); !errors.Is(err, source.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
		if published := must(must(s.Dir("db", plan.Manifest().Content().Input))(t).Complete())(t); len(published) != 0 {
			t.Errorf("%s: published %v", name, published)
		}
	}
}
