package objects

import (
	"io"
	"strings"
	"testing"

	"sequins/source"
	"sequins/test/expect"
)

// TestLinks reads versions that are names for others.
func TestLinks(t *testing.T) {
	server := inMemory{}
	open := func() *Source { return New(server, Options{}, "p") }
	server["p/db/1/part-00000"] = []byte("one")
	server["p/db/1/_SUCCESS"] = nil
	server["p/db/_hidden/part-00000"] = []byte("hidden")
	for version, text := range map[string]string{
		"2": " 1\n", "3": "_hidden", "self": "self", "chain": "2", "nowhere": "9", "out": "../db/1", "none": " ", "long": strings.Repeat("x", 5000),
	} {
		server["p/db/"+version+"/_SYMLINK"] = []byte(text)
	}
	for version, want := range map[string]string{"1": "one", "2": "one", "3": "hidden"} {
		src := open() // which remembers no link
		if got := content(t, src, version); got != want {
			t.Errorf("version %s: %q, want %q", version, got, want)
		}
		contents, err := src.Contents(t.Context(), "db", version)
		files := contents.Files
		if err != nil || len(files) != 1 || files[0].Name != "part-00000" || files[0].Size != int64(len(want)) {
			t.Errorf("files of %s: %v, %v", version, files, err)
		}
		if got := content(t, src, version); got != want {
			t.Errorf("version %s, listed: %q, want %q", version, got, want)
		}
	}
	src := open()
	if c, err := src.Contents(t.Context(), "db", "self"); err != nil || len(c.Files) != 0 {
		t.Errorf("a link to itself: %v, %v", c.Files, err)
	}
	for version, want := range map[string]string{
		"chain": "is a link itself", "nowhere": "p/db/9/", "out": "not a valid name", "none": "not a valid name", "long": "not a valid name",
	} {
		if files, err := src.Contents(t.Context(), "db", version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", version, files, err, want)
		}
	}
	// Open reads what was listed until the next listing.
	if _, err := src.Contents(t.Context(), "db", "2"); err != nil {
		t.Fatal(err)
	}
	server["p/db/2/_SYMLINK"] = []byte("_hidden")
	if got := content(t, src, "2"); got != "one" {
		t.Errorf("a link that was changed since: %q", got)
	}
	if _, err := src.Contents(t.Context(), "db", "2"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, src, "2"); got != "hidden" {
		t.Errorf("a link that was changed, listed again: %q", got)
	}
}

func content(t *testing.T, src source.Source, version string) string {
	t.Helper()
	f, err := src.Open(t.Context(), "db", version, source.File{Name: "part-00000"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	expect.NoError(t, err)
	return string(b)
}
