package finished_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/input/finished"
	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
)

// manifest returns one of n partitions.
func manifest(n int) *finished.Manifest {
	m := &finished.Manifest{
		Release: "1.2.3", Partitions: n, Partitioner: "hadoop",
		LastModified: time.Date(2026, 1, 31, 4, 5, 6, 789, time.UTC),
	}
	for p := range n {
		m.Blocks = append(m.Blocks, finished.Block{
			Name: finished.BlockName(p), Size: int64(1000 + p), Hash: fmt.Sprintf("%032x", p), Records: int64(p),
		})
	}
	return m
}

func encode(t testing.TB, m *finished.Manifest) []byte {
	t.Helper()
	data, err := m.Encode()
	expect.NoError(t, err)
	return data
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 300, shard.MaxPartitions} {
		want := manifest(n)
		got, err := finished.Parse(encode(t, want), "_BLOCKS.json")
		expect.NoError(t, err)
		if !cmp.Equal(want, got) {
			t.Errorf("%d partitions are not what they were", n)
		}
	}
	empty := manifest(1)
	empty.LastModified, empty.Blocks[0].Records = time.Time{}, 0
	if got, err := finished.Parse(encode(t, empty), ""); err != nil || !got.LastModified.IsZero() || got.Records() != 0 || got.Size() != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every change of a byte is found, and so is every truncation.
func TestDamage(t *testing.T) {
	data := encode(t, manifest(3))
	for i := range data {
		for _, flip := range []byte{1, 0x20, 0x80, 0xff} {
			bad := bytes.Clone(data)
			bad[i] ^= flip
			if _, err := finished.Parse(bad, "path/_BLOCKS.json"); err == nil {
				t.Fatalf("byte %d xor %#x is not found", i, flip)
			} else if !errors.Is(err, finished.ErrCorrupt) && !errors.Is(err, finished.ErrFormat) || !strings.HasPrefix(err.Error(), "path/_BLOCKS.json: ") {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		if _, err := finished.Parse(data[:i], ""); !errors.Is(err, finished.ErrCorrupt) {
			t.Fatalf("%d bytes of %d: %v", i, len(data), err)
		}
	}
}

// seal wraps the object of a manifest as Encode does, with the right checksum.
func seal(body string) []byte {
	crc := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(nil, `{"format":3,"crc32c":"%08x","manifest":%s}`+"\n", crc, body)
}

// A hostile manifest has the right checksum.
func TestHostile(t *testing.T) {
	text := string(encode(t, manifest(2)))
	_, body, _ := strings.Cut(text, `"manifest":`)
	body = strings.TrimSuffix(body, "}\n")
	if _, err := finished.Parse(seal(body), ""); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"name outside":       {`"part-00001.block"`, `"../part-00001.block"`},
		"name of another":    {`"part-00001.block"`, `"part-00000.block"`},
		"name with slash":    {`"part-00001.block"`, `"x/part-00001.block"`},
		"duplicate":          {`{"name":"part-00001.block"`, `{"name":"part-00000.block"`},
		"missing":            {`"partitions":2`, `"partitions":3`},
		"fewer":              {`"partitions":2`, `"partitions":1`},
		"none":               {`"partitions":2`, `"partitions":0`},
		"negative":           {`"partitions":2`, `"partitions":-1`},
		"huge":               {`"partitions":2`, `"partitions":99999999999999999999`},
		"size":               {`"size":1001`, `"size":-1`},
		"large size":         {`"size":1001`, `"size":9000000000000000000`},
		"fraction":           {`"size":1001`, `"size":1001.5`},
		"records":            {`"records":1`, `"records":-1`},
		"many records":       {`"records":1`, `"records":9000000000000000000`},
		"partitioner":        {`"hadoop"`, `"unheard-of"`},
		"hash":               {`"hash":"00`, `"hash":"0`},
		"capital hash":       {`"hash":"00`, `"hash":"AA`},
		"no hash":            {`"hash":"` + strings.Repeat("0", 31) + `1"`, `"hash":""`},
		"unknown member":     {`"last_modified"`, `"unknown":1,"last_modified"`},
		"member twice":       {`"last_modified"`, `"partitions":2,"last_modified"`},
		"member in capitals": {`"last_modified"`, `"Last_modified"`},
		"space":              {`"last_modified":`, `"last_modified": `},
		"not in UTC":         {`06.000000789Z`, `06.000000789+01:00`},
		"null":               {`"blocks":[{`, `"blocks":[null,{`},
		"no array":           {`"blocks":[`, `"blocks":7,"x":[`},
		"long release":       {`1.2.3`, strings.Repeat("x", 300)},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(body, change[0], change[1], 1)
			if bad == body {
				t.Fatal("nothing was changed")
			}
			if _, err := finished.Parse(seal(bad), ""); !errors.Is(err, finished.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Many small elements are refused before memory for them is taken.
func TestManyElements(t *testing.T) {
	for _, element := range []string{"null,", "{},", `"",`, "[],"} {
		data := seal(`{"blocks":[` + strings.Repeat(element, (finished.MaxSize-200)/len(element)) + `null]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := finished.Parse(data, ""); !errors.Is(err, finished.ErrCorrupt) {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 8*finished.MaxSize {
			t.Errorf("%s: %d MiB are taken", element, allocated>>20)
		}
	}
	if _, err := finished.Parse(make([]byte, finished.MaxSize+1), ""); !errors.Is(err, finished.ErrCorrupt) {
		t.Error(err)
	}
}

func TestFormat(t *testing.T) {
	for _, format := range []string{"0", "2", "99999", "-1"} {
		data := bytes.Replace(encode(t, manifest(1)), []byte(`"format":3`), []byte(`"format":`+format), 1)
		if _, err := finished.Parse(data, ""); !errors.Is(err, finished.ErrFormat) || errors.Is(err, finished.ErrCorrupt) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestMatch(t *testing.T) {
	m := manifest(3)
	files := func(change func([]source.File) []source.File) []source.File {
		var all []source.File
		for _, b := range m.Blocks {
			all = append(all, source.File{Name: b.Name, Size: b.Size})
		}
		return change(all)
	}
	if err := m.Match(files(func(f []source.File) []source.File { return f })); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name   string
		class  error
		change func([]source.File) []source.File
	}{
		{"part-00002.block", finished.ErrIncomplete, func(f []source.File) []source.File { return f[:2] }},
		{"part-00000.block", finished.ErrIncomplete, func(f []source.File) []source.File { return f[1:] }},
		{"part-00001.block", finished.ErrCorrupt, func(f []source.File) []source.File { f[1].Size++; return f }},
		{"part-00003.block", finished.ErrCorrupt, func(f []source.File) []source.File { return append(f, source.File{Name: "part-00003.block"}) }},
		{"a.block", finished.ErrCorrupt, func(f []source.File) []source.File { return append([]source.File{{Name: "a.block"}}, f...) }},
	} {
		if err := m.Match(files(tt.change)); !errors.Is(err, tt.class) || !strings.HasPrefix(err.Error(), tt.name) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is parsed is what is written.
func FuzzParse(f *testing.F) {
	f.Add(encode(f, manifest(2)))
	f.Add(seal(`{"blocks":[{}]}`))
	f.Add([]byte(`{"format":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, body, ok := bytes.Cut(data, []byte(`"manifest":`)); ok { // get past the checksum
			if sealed := seal(string(bytes.TrimSuffix(body, []byte("}\n")))); len(sealed) < 1<<16 {
				check(t, sealed)
			}
		}
		check(t, data)
	})
}

func check(t *testing.T, data []byte) {
	m, err := finished.Parse(data, "path")
	if err != nil {
		return
	}
	if again, err := m.Encode(); err != nil || !bytes.Equal(again, data) {
		t.Errorf("%q is written as %q, %v", data, again, err)
	}
	if len(m.Blocks) != m.Partitions || m.Partitions < 1 || m.Size() < 0 || m.Records() < 0 {
		t.Errorf("%+v", m)
	}
}
