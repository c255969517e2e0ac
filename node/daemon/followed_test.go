package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// Files that have changed in any way are read again, and those that are not good until they are.
func TestFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	expect.NoError(t, os.WriteFile(file, []byte("1"), 0o600))
	reads, fails := 0, error(nil)
	f := followed{log: slog.New(slog.DiscardHandler), files: []string{file, ""}, read: func() error { reads++; return fails }}
	f.inUse = f.stat()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, step := range []struct {
		what   string
		change func() error
	}{
		{"another content", func() error { return os.WriteFile(file, []byte("22"), 0o600) }},
		{"another time", func() error { return os.Chtimes(file, time.Time{}, old) }},
		{"another file with the same time", func() error {
			return errors.Join(os.WriteFile(file+"2", []byte("33"), 0o600), os.Chtimes(file+"2", time.Time{}, old), os.Rename(file+"2", file))
		}},
		{"another mode", func() error { return os.Chmod(file, 0o640) }},
		{"none", func() error { return os.Remove(file) }},
		{"one again", func() error { return os.WriteFile(file, nil, 0o600) }},
	} {
		reads, fails = 0, errors.New("not good")
		expect.NoError(t, step.change())
		for range 2 {
			if err := f.look(false); err != fails || f.problem() == "" { //nolint:errorlint // as it is
				t.Errorf("%s: %v", step.what, err)
			}
		}
		fails = nil
		for range 2 {
			if err := f.look(false); err != nil || f.problem() != "" {
				t.Errorf("%s: %v", step.what, err)
			}
		}
		if reads != 3 {
			t.Errorf("%s: read %d times", step.what, reads)
		}
	}
}

// An error is logged once for the files as they are, also if its text has the time.
func TestFollowedIsLoggedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	expect.NoError(t, os.WriteFile(file, []byte("1"), 0o600))
	var log expect.Output
	reads := 0
	f := followed{log: slog.New(slog.NewTextHandler(&log, nil)), files: []string{file}, read: func() error { reads++; return fmt.Errorf("not good at %d o'clock", reads) }}
	for _, want := range []int{1, 2} {
		expect.NoError(t, os.WriteFile(file, make([]byte, 10*want), 0o600))
		for range 3 {
			if err := f.look(false); err == nil || f.problem() != err.Error() {
				t.Errorf("%v, %q", err, f.problem())
			}
		}
		if got := strings.Count(log.String(), "level=ERROR"); got != want {
			t.Errorf("logged %d times, want %d:\n%s", got, want, &log)
		}
	}
}
