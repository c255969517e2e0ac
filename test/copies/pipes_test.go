//go:build integration

package copies

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// pipes returns a directory with a named pipe for each file of another one, made in an order. A tool that copies it gets the files
// as from a slow disk or network: each takes a second, and that of the name stalled stands still for longer than settle in between.
func pipes(t testing.TB, from string, order []string, stalled string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range order {
		data, err := os.ReadFile(filepath.Join(from, name))
		path := filepath.Join(dir, name)
		if err = errors.Join(err, syscall.Mkfifo(path, 0o644)); err != nil {
			t.Fatal(err)
		}
		pause := time.Duration(0)
		if name == stalled {
			pause = 2 * settle
		}
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			feed(path, data, pause)
		}()
		t.Cleanup(func() {
			if f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // for one that no tool has opened
				f.Close()
			}
			<-fed
		})
	}
	return dir
}

// feed writes data to a pipe as soon as it is read.
func feed(path string, data []byte, pause time.Duration) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return // the tool fails
	}
	defer f.Close()
	const steps = 4
	for i := range steps {
		if _, err := f.Write(data[i*len(data)/steps : (i+1)*len(data)/steps]); err != nil || len(data) == 0 {
			return
		}
		<-time.After(time.Second / steps)
		if i == steps/2 {
			<-time.After(pause)
		}
	}
}
