package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	if got, except, err := s.Origin("db"); got != "" || len(except) > 0 || err != nil {
		t.Errorf("%q, %q, %v", got, except, err)
	}
	for source, except := range map[string][]string{"/srv/a": nil, "s3://bucket/päth with spaces": {"1", "2026-01-31#00001"}} {
		if err := s.SetOrigin("db", source, except); err != nil {
			t.Fatal(err)
		}
		if got, others, err := s.Origin("db"); got != source || !slices.Equal(others, except) || err != nil {
			t.Errorf("%q, %q, %v, want %q, %q", got, others, err, source, except)
		}
	}
	if err := s.SetOrigin("db", "", nil); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"a\nb", strings.Repeat("x", maxOrigin)} { // recorded as nothing else
		if err := s.SetOrigin("db", source, nil); err != nil {
			t.Error(err)
		}
		if got, _, err := s.Origin("db"); got != "" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := s.SetOrigin("db", "/srv/a", slices.Repeat([]string{"2026-01-31"}, maxOrigins/10)); err == nil {
		t.Error("it records what it could not read again")
	}
	note := filepath.Join(dir, "data", "db", originName)
	for _, content := range []string{"", "/srv/a", "a\nb", strings.Repeat("x", maxOrigins+1)} {
		if err := os.WriteFile(note, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.Origin("db"); got != "" || !errors.Is(err, blocks.ErrCorrupt) {
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
