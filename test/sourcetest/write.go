package sourcetest

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"sequins/source"
	"sequins/test/expect"
)

func testWrite(t *testing.T, p Place) {
	p.Put(t, "db/1/part-0", []byte("1"))
	src := p.Source(t)
	const name, limit = "_PIN", 1000
	if _, err := source.ReadSmall(t.Context(), src, "db", name, limit); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a file that is not there: %v", err)
	}
	if err := source.WriteSmall(t.Context(), src, "db", name, []byte("x"), []byte("another content")); !errors.Is(err, source.ErrChanged) {
		t.Errorf("a file that has been removed was written: %v", err)
	}
	var old []byte
	for _, text := range []string{"one", "two", "", strings.Repeat("x", limit)} {
		expect.NoError(t, source.WriteSmall(t.Context(), src, "db", name, []byte(text), old))
		if err := source.WriteSmall(t.Context(), src, "db", name, []byte("late"), old); !errors.Is(err, source.ErrChanged) || !strings.Contains(err.Error(), "db/"+name) {
			t.Errorf("a changed file was written: %v", err)
		}
		var err error
		if old, err = source.ReadSmall(t.Context(), src, "db", name, limit); err != nil || string(old) != text || old == nil {
			t.Fatalf("%.20q is read as %.20q, %v", text, old, err)
		}
	}
	expect.NoError(t, source.WriteSmall(t.Context(), src, "", "_ROOT", []byte("of the source"), nil))
	if data, err := source.ReadSmall(t.Context(), src, "", "_ROOT", limit); err != nil || string(data) != "of the source" {
		t.Errorf("a file of the source's directory: %q, %v", data, err)
	}
	if _, err := source.ReadSmall(t.Context(), src, "db", name, limit-1); err == nil {
		t.Error("more than the limit was read")
	}
	for _, bad := range []string{"part-0", "1/_x", "_x/../y", ""} {
		if err := source.WriteSmall(t.Context(), src, "db", bad, nil, nil); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q was written: %v", bad, err)
		}
	}
}
