package blocks

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sequins/test/expect"
)

// sender is a reader of a block with one large value of n random bytes, and a pair of sockets.
type sender struct {
	r        *Reader
	path     string
	value    []byte
	from, to int
}

func newSender(t *testing.T, c Compression, n int) *sender {
	t.Helper()
	s := &sender{path: filepath.Join(t.TempDir(), "00000.block"), value: make([]byte, n)}
	rand.NewChaCha8([32]byte{1}).Read(s.value)
	f, err := os.Create(s.path)
	expect.NoError(t, err)
	_, err = f.Write(buildBlock(t, []record{{[]byte("a"), []byte("small")}, {[]byte("k"), s.value}}, WriterOptions{Compression: c}))
	expect.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	s.r, err = Open(s.path)
	expect.NoError(t, err)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	expect.NoError(t, err)
	s.from, s.to = fds[0], fds[1]
	t.Cleanup(func() { expect.NoError(t, errors.Join(s.r.Close(), unix.Close(s.from), unix.Close(s.to))) })
	return s
}

func (s *sender) get(t *testing.T) Value {
	t.Helper()
	v, ok, err := s.r.Get([]byte("k"), new(Scratch))
	if err != nil || !ok || v.Len() != int64(len(s.value)) {
		t.Fatal(ok, err)
	}
	return v
}

// read reads the value from off to its end.
func (s *sender) read(t *testing.T, off int64) error {
	t.Helper()
	v := s.get(t)
	section := v.Section(off, v.Len())
	defer section.Close()
	got, err := io.ReadAll(section)
	if err == nil && !bytes.Equal(got, s.value[off:]) {
		t.Errorf("from %d: %d wrong bytes", off, len(got))
	}
	return err
}

// send sends what can be sent from off on.
func (s *sender) send(t *testing.T, off int64) (sent []byte) {
	t.Helper()
	v, buf := s.get(t), make([]byte, 1<<20)
	for {
		n, done := v.SendTo(s.from, off+int64(len(sent)))
		if done && n == 0 {
			return sent
		}
		for got := 0; got < n || !done; {
			m, err := unix.Read(s.to, buf)
			if err == unix.EAGAIN {
				break
			}
			expect.NoError(t, err)
			sent, got = append(sent, buf[:m]...), got+m
		}
	}
}

// Chunks are sent from the file after they were read, from any offset, until they have left memory.
func TestSendTo(t *testing.T) {
	for _, c := range []Compression{None, FSST} {
		for _, n := range []int{LargeValue + 1, 2*chunkSize - 1, 2 * chunkSize, 5*chunkSize + 7, 3<<20 + 5} {
			s := newSender(t, c, n)
			if got := s.send(t, 0); len(got) > 0 {
				t.Errorf("%d bytes were sent before they were verified", len(got))
			}
			expect.NoError(t, s.read(t, 0))
			for _, off := range []int64{0, 1, chunkSize - 1, chunkSize, int64(n) - 1, int64(n)} {
				if got := s.send(t, off); !bytes.Equal(got, s.value[off:]) {
					t.Errorf("%v, %d bytes from %d: %d bytes were sent", c, n, off, len(got))
				}
			}
			first := s.get(t).large.chunks[0]
			expect.NoError(t, s.r.file.Forget(first.at, int64(n)))
			in, err := s.r.file.Resident(first.at, first.at+int64(first.n))
			expect.NoError(t, errors.Join(err, s.r.Sweep(func(time.Duration) error { return nil })))
			if got := s.get(t).Sendable(0); got != in {
				t.Errorf("in memory %v, sendable %v", in, got)
			}
		}
	}
}

// Only chunks that were read are sent, and none of a value that is packed.
func TestSendToOfParts(t *testing.T) {
	s := newSender(t, None, 4*chunkSize)
	expect.NoError(t, s.read(t, 2*chunkSize))
	if got := s.send(t, 0); len(got) > 0 || !bytes.Equal(s.send(t, 2*chunkSize), s.value[2*chunkSize:]) {
		t.Errorf("%d bytes were sent that were not verified, or verified ones were not", len(got))
	}
	r := openFile(t, buildBlock(t, []record{{[]byte("k"), make([]byte, 1<<20)}, {[]byte("l"), s.value}}, WriterOptions{Compression: FSST}))
	v, _, err := r.Get([]byte("k"), new(Scratch))
	expect.NoError(t, err)
	section := v.Section(0, v.Len())
	defer section.Close()
	if _, err := io.Copy(io.Discard, section); err != nil || v.Sendable(0) {
		t.Errorf("a packed value can be sent: %v", err)
	}
}

// What is missing in a file that was cut off is not sent, and damage when it is read.
func TestSendToOfTruncated(t *testing.T) {
	s := newSender(t, None, 4*chunkSize)
	expect.NoError(t, s.read(t, 0))
	v, at := s.get(t), int64(2*chunkSize+100)
	expect.NoError(t, os.Truncate(s.path, v.large.chunks[0].at+at))
	if n, done := v.SendTo(s.from, at); n != 0 || !done || v.Sendable(at) {
		t.Errorf("%d bytes behind the end were sent", n)
	}
	section := v.Section(at, v.Len())
	defer section.Close()
	if _, err := io.ReadAll(section); !errors.Is(err, ErrCorrupt) {
		t.Errorf("reading behind the end: %v", err)
	}
}

// Damage anywhere ends what was trusted: what has been found whole before is verified again.
func TestDamageEndsTrust(t *testing.T) {
	s := newSender(t, None, 4*chunkSize)
	expect.NoError(t, s.read(t, 0))
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	expect.NoError(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte{s.value[3*chunkSize] ^ 1}, s.get(t).large.chunks[3].at); err != nil {
		t.Fatal(err)
	}
	if err := s.read(t, 3*chunkSize); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("reading the damage: %v", err)
	}
	if s.get(t).Sendable(0) {
		t.Error("chunks are sent as if nothing had been damaged")
	}
}
