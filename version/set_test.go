package version

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBlock returns a block with one pair.
func newBlock(t *testing.T, key, value string) *blocks.Reader {
	t.Helper()
	var buf bytes.Buffer
	w, err := blocks.NewWriter(&buf, blocks.WriterOptions{Partitions: 1, TempDir: t.TempDir()})
	expect.NoError(t, err)
	expect.NoError(t, w.Add([]byte(key), []byte(value)))
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := blocks.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()), "test")
	expect.NoError(t, err)
	return r
}

// fakeBlock records whether it is closed, and fails with err.
type fakeBlock struct {
	name   string // of its version, where a test wants to know
	err    error
	reads  atomic.Int64
	closed atomic.Bool
}

func (b *fakeBlock) Get([]byte, *blocks.Scratch) (blocks.Value, bool, error) {
	b.reads.Add(1)
	if b.closed.Load() {
		return blocks.Value{}, false, errors.New("read after close")
	}
	return blocks.Value{}, true, b.err
}

func (*fakeBlock) GetBatch([][]byte, []blocks.Result, *blocks.BatchScratch) {}
func (*fakeBlock) IterWithin([]byte, []byte, int) *blocks.Iterator          { return nil }
func (*fakeBlock) Properties() blocks.Properties                            { return blocks.Properties{} }
func (*fakeBlock) Size() int64                                              { return 1 }
func (b *fakeBlock) Close() error {
	if !b.closed.CompareAndSwap(false, true) {
		return errors.New("closed twice")
	}
	return nil
}

// ready returns a set whose current version has fake blocks.
func ready(t *testing.T, name string, partitions int) (*Set, []*fakeBlock) {
	t.Helper()
	s, v := NewSet("db"), newVersion(name, partitions)
	all := make([]*fakeBlock, partitions)
	for p := range all {
		all[p] = &fakeBlock{}
		expect.NoError(t, v.Put(p, all[p]))
	}
	s.Prepare(v)
	expect.NoError(t, s.Activate(in(name)))
	return s, all
}

func TestHandleReads(t *testing.T) {
	s := NewSet("db")
	if s.Acquire() != nil || s.AcquireVersion("1", "") != nil || s.Current() != (content.Content{}) {
		t.Fatal("Acquire of an empty set returned a version")
	}
	v := newVersion("1", 2)
	s.Prepare(v)
	if s.Acquire() != nil {
		t.Fatal("a prepared version is current")
	}
	key := []byte("a")
	p := shard.String.Partition(key, 2)
	h := s.AcquireVersion("1", "")
	var scratch blocks.Scratch
	if _, _, err := h.Get(p, key, &scratch); err != ErrNotLocal {
		t.Errorf("Get of a partition that is not here: %v", err)
	}
	expect.NoError(t, v.Put(p, newBlock(t, "a", "value")))
	if value, found, err := h.Get(h.Partition(key), key, &scratch); err != nil || !found || string(value.Bytes()) != "value" {
		t.Errorf("Get = %q, %v, %v", value.Bytes(), found, err)
	}
	if _, found, err := h.Get(p, []byte("b"), &scratch); err != nil || found {
		t.Errorf("Get of an absent key = %v, %v", found, err)
	}
	for _, p := range []int{-1, 2, 1 << 40} {
		if _, _, err := h.Get(p, key, &scratch); err != ErrNotLocal {
			t.Errorf("Get of partition %d: %v", p, err)
		}
	}
	if h.Name != "1" || h.Partitions != 2 || h.Following.Peers(0) != nil {
		t.Errorf("version %q, %d partitions, peers %v", h.Name, h.Partitions, h.Following.Peers(0))
	}
	want := make([]bool, 2)
	want[p] = true
	if diff := cmp.Diff(want, v.Held()); diff != "" {
		t.Errorf("Held():\n%s", diff)
	}
	h.Release()
	expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
}

func TestEmptyVersion(t *testing.T) {
	s, _ := ready(t, "1", 0)
	h := s.Acquire()
	if _, found, err := h.Get(h.Partition([]byte("a")), []byte("a"), nil); found || err != nil {
		t.Errorf("Get from an empty version = %v, %v", found, err)
	}
	h.Release()
	expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
}

func TestForwardOnly(t *testing.T) {
	s, _ := ready(t, "2", 1)
	if err := s.Activate(in("3")); err == nil {
		t.Error("a version that is not in the set became active")
	}
	s.Prepare(newVersion("1", 1))
	if err := s.Activate(in("1")); err == nil {
		t.Error("an older version was activated")
	}
	if s.Current().Input != in("2") {
		t.Errorf("current is %v", s.Current())
	}
}

func TestPrepareReplaces(t *testing.T) {
	s, all := ready(t, "1", 1)
	old, fresh := s.Version(in("1")), newVersion("1", 2)
	h := s.Acquire()
	if got := s.Prepare(fresh); got != old {
		t.Errorf("Prepare returned %p, want %p", got, old)
	}
	if s.Version(in("1")) != fresh || s.Acquire().Partitions != 2 {
		t.Error("the old one is still there")
	}
	if _, _, err := h.Get(0, nil, nil); err != nil || all[0].closed.Load() {
		t.Errorf("a reader of the replaced version: %v", err)
	}
	h.Release()
	expect.NoError(t, old.Close(t.Context()))
}

func TestCloseWaitsForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := ready(t, "1", 1)
		h1, h2 := s.Acquire(), s.AcquireVersion("1", "")
		v := s.Remove(in("1"))
		if s.Acquire() != nil || s.AcquireVersion("1", "") != nil || s.Remove(in("1")) != nil {
			t.Error("a removed version can be acquired")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := v.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || all[0].closed.Load() {
			t.Errorf("closed while being read: %v", err)
		}
		done := make(chan error)
		go func() { done <- v.Close(t.Context()) }()
		h1.Release()
		synctest.Wait()
		if all[0].closed.Load() {
			t.Error("closed while the second reader holds it")
		}
		h2.Release()
		if err := <-done; err != nil || !all[0].closed.Load() {
			t.Errorf("after the last reader: %v", err)
		}
	})
}

// TestLateReaders runs readers between the steps of closing.
func TestLateReaders(t *testing.T) {
	v := newVersion("1", 1)
	if !v.acquire() {
		t.Fatal("a version cannot be read")
	}
	v.shut()
	if v.acquire() {
		t.Error("a version that is shut can be read")
	}
	select {
	case <-v.drained:
		t.Fatal("drained with a reader in it")
	default:
	}
	v.release()
	<-v.drained
	if v.acquire() {
		t.Error("a version that is drained can be read")
	}
	expect.NoError(t, v.Close(t.Context()))
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := ready(t, "1", 1)
		v := s.Version(in("1"))
		time.Sleep(time.Hour)
		if v.Idle() != 0 {
			t.Errorf("a current version is idle for %v", v.Idle())
		}
		v.Retire()
		time.Sleep(time.Minute)
		v.Retire() // does not restart the idle time
		if v.Idle() != time.Minute {
			t.Errorf("idle for %v", v.Idle())
		}
		s.AcquireVersion("1", "").Release()
		time.Sleep(time.Second)
		if v.Idle() != time.Second {
			t.Errorf("idle for %v after a request", v.Idle())
		}
		expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
	})
}

func TestPutReplaces(t *testing.T) {
	s, all := ready(t, "1", 1)
	v := s.Version(in("1"))
	h := s.Acquire()
	v.SetDamaged(0)
	v.SetDamaged(1)
	if v.Held()[0] {
		t.Error("Held includes a damaged block")
	}
	if _, _, err := h.Get(0, nil, nil); err != nil {
		t.Errorf("a damaged block is not read from: %v", err)
	}
	fresh := &fakeBlock{}
	expect.NoError(t, v.Put(0, fresh))
	if all[0].closed.Load() || !v.Held()[0] {
		t.Errorf("replaced: closed %v, held %v", all[0].closed.Load(), v.Held())
	}
	if _, _, err := h.Get(0, nil, nil); err != nil || fresh.reads.Load() != 1 {
		t.Errorf("the fresh block was read %d times: %v", fresh.reads.Load(), err)
	}
	v.Withhold(true)
	renewed := v.Renew()
	renewed.Retire()
	if renewed.Renew() != nil {
		t.Error("it is renewed without need")
	}
	if old := s.Prepare(renewed); old != v {
		t.Fatal("it has not taken the place of the other one")
	}
	closing := make(chan error)
	go func() { closing <- v.Close(t.Context()) }()
	after := s.Acquire()
	if _, _, err := after.Get(0, nil, nil); err != nil || fresh.reads.Load() != 2 || !slices.Equal(after.Held(), []bool{true}) || after.Withheld() || !after.Replaced() {
		t.Errorf("the fresh block was read %d times: %v", fresh.reads.Load(), err)
	}
	if after.ID() != h.ID() || !h.Replaced() {
		t.Errorf("it is another version: %d and %d, replaced: %v", h.ID(), after.ID(), h.Replaced())
	}
	if all[0].closed.Load() {
		t.Error("a block is closed that may be read from")
	}
	h.Release()
	if err := <-closing; err != nil || !all[0].closed.Load() || fresh.closed.Load() {
		t.Errorf("beside a later reader: %v, closed %v, and the fresh one %v", err, all[0].closed.Load(), fresh.closed.Load())
	}
	after.Release()
	for _, p := range []int{-1, 1} {
		if err := v.Put(p, &fakeBlock{}); err == nil {
			t.Errorf("Put took partition %d of 1", p)
		}
	}
	expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
	if !fresh.closed.Load() {
		t.Error("not all blocks were closed")
	}
}

func TestSolo(t *testing.T) {
	var c Cluster = Solo{}
	f := c.Follow(t.Context(), "db", in("1"))
	if diff := cmp.Diff([]int{0, 1, 2}, f.Owned(3)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 2}, Missing(f, []bool{false, true, false}, 1)); diff != "" {
		t.Error(diff)
	}
	if m := Missing(f, []bool{true}, 1); m != nil {
		t.Errorf("missing %v", m)
	}
	if c.Changes() != nil || f.Peers(0) != nil {
		t.Error("a cluster of one has peers")
	}
}

func TestAcquireDoesNotAllocate(t *testing.T) {
	s, _ := ready(t, "1", 2)
	key := []byte("key")
	if n := testing.AllocsPerRun(100, func() {
		h := s.Acquire()
		h.Get(h.Partition(key), key, nil)
		h.Release()
		s.AcquireVersion("1", "").Release()
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s, v := NewSet("db"), newVersion("1", 1)
	s.Prepare(v)
	s.Activate(in("1"))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Acquire().Release()
		}
	})
}

// TestInputsOfOneName switches from one input of a version to another, whichever has the greater hash.
func TestInputsOfOneName(t *testing.T) {
	for _, pair := range [][2]string{{"1", "1~f"}, {"1", "1~0"}} {
		x, y := pair[0], pair[1]
		s, _ := ready(t, x, 1)
		s.Prepare(newVersion(y, 1))
		code := func(spelled string) string { return s.Version(in(spelled)).Code() }
		check := func(code, want string) {
			t.Helper()
			h := s.AcquireVersion("1", code)
			if h == nil {
				t.Fatalf("%v: code %q: no version", pair, code)
			}
			defer h.Release()
			if h.Content.Input != in(want) || h.Name != "1" {
				t.Errorf("%v: code %q: %v, want %s", pair, code, h.Content, want)
			}
		}
		for i, current := range []string{x, y, x} {
			expect.NoError(t, s.Activate(in(current)))
			if h := s.AcquireServed("1", code(y)); (h != nil) != (i > 0) {
				t.Errorf("%v: the content to switch to next: %v", pair, h)
			} else if h != nil {
				h.Release()
			}
			if s.Current().Input != in(current) {
				t.Errorf("%v: current is %v, want %s", pair, s.Current(), current)
			}
			check("", current)
			check(code(x), x)
			check(code(y), y)
			h := s.AcquireServed("1", "")
			if h.Content.Input != in(current) {
				t.Errorf("%v: %v is served, want %s", pair, h.Content, current)
			}
			h.Release()
		}
		if h := s.AcquireVersion("1", content.Sum("other")+"."+content.Sum("division")); h != nil {
			h.Release()
			t.Errorf("%v: there is no such content", pair)
		}
		old := s.Remove(in(x))
		check("", y)
		if s.Acquire() != nil || s.Version(in(x)) != nil || s.Version(in(y)) == nil {
			t.Errorf("%v: one of two inputs was removed", pair)
		}
		expect.NoError(t, old.Close(t.Context()))
		expect.NoError(t, s.Remove(in(y)).Close(t.Context()))
	}
}

// TestAcquireOfARetiredInput: of two inputs of a name of which none is current, the one that stays answers.
func TestAcquireOfARetiredInput(t *testing.T) {
	for _, stays := range []string{"1~0", "1~f"} {
		s, _ := ready(t, "2", 1)
		s.Prepare(newVersion("1", 1))
		s.Prepare(newVersion(stays, 1))
		s.Version(in("1")).Retire()
		for range 20 { // the order of a map differs
			h := s.AcquireVersion("1", "")
			if h.Content.Input != in(stays) {
				t.Fatalf("%v answers, want %s", h.Content, stays)
			}
			h.Release()
		}
	}
}

// A version is read by its name from the content that was current rather than from one that has never been, also while the former is retired.
func TestAcquireVersionThatWasCurrent(t *testing.T) {
	for range 20 { // the contents are in a map
		s := NewSet("db")
		was, never, next := New(Info{DB: "db", Content: contentOf("1", "a")}), New(Info{DB: "db", Content: contentOf("1", "b")}), New(Info{DB: "db", Content: contentOf("2", "a")})
		for _, v := range []*Version{was, never, next} {
			s.Prepare(v)
		}
		expect.NoError(t, s.Activate(was.Input))
		expect.NoError(t, s.Activate(next.Input))
		was.Retire()
		h := s.AcquireVersion("1", "")
		if h.ID() != was.id {
			t.Fatalf("the content %v is read", h.Content)
		}
		h.Release()
	}
}

func contentOf(name, hash string) content.Content {
	return content.Content{Input: content.Input{Name: name, Hash: hash}}
}

// A content that takes the place of another one of its input, as after a damaged manifest, is found by name at any time.
func TestAcquireWhileReplaced(t *testing.T) {
	s, _ := ready(t, "1", 1)
	code := s.Version(in("1")).code
	var readers sync.WaitGroup
	var ended atomic.Bool
	for what, acquire := range map[string]func() *Handle{
		"Acquire":        s.Acquire,
		"AcquireVersion": func() *Handle { return s.AcquireVersion("1", "") },
		"AcquireServed":  func() *Handle { return s.AcquireServed("1", code) },
	} {
		readers.Go(func() {
			for !ended.Load() {
				h := acquire()
				if h == nil {
					t.Errorf("%s finds nothing", what)
					return
				}
				h.Release()
			}
		})
	}
	for range 2000 {
		v := newVersion("1", 1)
		expect.NoError(t, v.Put(0, &fakeBlock{}))
		expect.NoError(t, s.Prepare(v).Close(t.Context()))
	}
	ended.Store(true)
	readers.Wait()
	expect.NoError(t, s.Remove(in("1")).Close(t.Context()))
}
