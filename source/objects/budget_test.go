package objects

import (
	"io"
	"testing"

	"golang.org/x/sync/semaphore"

	"sequins/source"
	"sequins/test/expect"
)

// TestBudget opens more readers than there is memory for, and reads from all of
// them in turns.
func TestBudget(t *testing.T) {
	const size = 6 << 20
	s := New(inMemory{"db/1/file": make([]byte, size)}, Options{}, "")
	s.memory, s.budget = 8<<20, semaphore.NewWeighted(8<<20)
	var readers []*reader
	for range 12 {
		f, err := s.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		expect.NoError(t, err)
		defer f.Close()
		readers = append(readers, f.(*reader))
	}
	if _, err := io.CopyN(io.Discard, readers[0], 1000); err != nil {
		t.Fatal(err)
	}
	if next := readers[0].next; next != minPart {
		t.Errorf("for the first thousand bytes, %d were asked for", next)
	}
	most := 0
	for range size / (256 << 10) {
		for _, r := range readers {
			if _, err := io.CopyN(io.Discard, r, 256<<10); err != nil && err != io.EOF {
				t.Fatal(err)
			}
		}
		most = max(most, checkBudget(t, s, readers))
	}
	if most == 0 {
		t.Error("nobody has read ahead")
	}
	for _, r := range readers {
		if n, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("after %d more bytes: %v", n, err)
		}
		r.Close()
	}
	if !s.budget.TryAcquire(s.memory) {
		t.Error("readers that were closed have not given back everything")
	}
}

// checkBudget returns how much the readers hold of the budget.
func checkBudget(t *testing.T, s *Source, readers []*reader) (paid int) {
	t.Helper()
	for _, r := range readers {
		unpaid := 0
		for _, p := range r.parts {
			if p.paid {
				paid += len(*p.buffer)
			} else {
				unpaid++
			}
		}
		if unpaid > 1 || len(r.parts) > parallel {
			t.Errorf("a reader has %d parts, %d of them over the budget", len(r.parts), unpaid)
		}
	}
	if int64(paid) > s.memory {
		t.Errorf("%d bytes of %d are held", paid, s.memory)
	}
	return paid
}

func TestSizes(t *testing.T) {
	for _, test := range []struct{ window, part int64 }{
		{minPart, minPart}, {2 * minPart, minPart}, {parallel * minPart, minPart}, {parallel*minPart*2 - 1, minPart},
		{parallel * minPart * 2, 2 * minPart}, {maxWindow, maxPart}, {maxWindow * 8, maxPart},
	} {
		if got := partSize(test.window); got != test.part {
			t.Errorf("parts of a window of %d have %d bytes, want %d", test.window, got, test.part)
		}
	}
	for _, test := range []struct{ part, buffer int64 }{
		{1, minPart}, {minPart, minPart}, {minPart + 1, 2 * minPart}, {maxPart - 1, maxPart}, {maxPart, maxPart},
	} {
		if got := bufferSize(test.part); got != test.buffer {
			t.Errorf("the buffer of a part of %d has %d bytes, want %d", test.part, got, test.buffer)
		}
	}
	if got := class(minPart); got != 0 {
		t.Errorf("the smallest class is %d", got)
	}
	if got := class(maxPart); got != classes-1 {
		t.Errorf("the largest class is %d of %d", got, classes)
	}
}
