package once_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sequins/test/expect"
	"sequins/test/once"
)

// A directory is made again if a file that it is made of has changed, and if nobody has completed it.
func TestDir(t *testing.T) {
	dir, made := t.TempDir(), 0
	files := filepath.Join(dir, "src")
	write := func(name, text string) {
		t.Helper()
		expect.NoError(t, errors.Join(os.MkdirAll(files, 0o755), os.WriteFile(filepath.Join(files, name), []byte(text), 0o644)))
	}
	look := func(want int, fails error) {
		t.Helper()
		_, err := once.Dir(filepath.Join(dir, "cache", "made"), func(dir string) error {
			made++
			return errors.Join(os.Mkdir(filepath.Join(dir, "part"), 0o755), fails)
		}, files, filepath.Join(dir, "not-there"))
		if !errors.Is(err, fails) || made != want {
			t.Errorf("%v; made %d times, want %d", err, made, want)
		}
	}
	write("A.java", "class A {}")
	look(1, nil)
	look(1, nil)
	write("A.java", "class A { }")
	look(2, errors.New("disk full"))
	look(3, nil)
	write("B.java", "")
	look(4, nil)
	write("A.java", "class A {}")
	expect.NoError(t, os.Remove(filepath.Join(files, "B.java")))
	look(4, nil)
}
