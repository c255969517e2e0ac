package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/blocks"
)

func TestOrigin(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := s.Origin("db"); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, source := range []string{"/srv/a", "s3://bucket/päth with spaces", ""} {
		if err := s.SetOrigin("db", source); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Origin("db"); got != source || err != nil {
			t.Errorf("%q, %v, want %q", got, err, source)
		}
	}
	for _, source := range []string{"a\nb", strings.Repeat("x", maxOrigin)} { // recorded as nothing else
		if err := s.SetOrigin("db", source); err != nil {
			t.Error(err)
		}
		if got, err := s.Origin("db"); got != "" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	note := filepath.Join(dir, "data", "db", originName)
	for _, content := range []string{"", "/srv/a", "a\nb\n", strings.Repeat("x", maxOrigin+1)} {
		if err := os.WriteFile(note, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Origin("db"); got != "" || !errors.Is(err, blocks.ErrCorrupt) {
			t.Errorf("%.20q: %q, %v", content, got, err)
		}
	}
	if err := s.ForgetServed("db"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(note)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a db that is forgotten leaves %v", err)
	}
}
