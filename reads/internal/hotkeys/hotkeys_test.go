package hotkeys_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/reads/internal/hotkeys"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The top keys of reads by Zipf's law are those of an exact count, each with about its share and rate.
func TestZipf(t *testing.T) {
	const reads, every, keys = 400_000, 8, 100_000
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.2, 1, keys-1)
	var s hotkeys.Sketch
	exact := map[uint64]float64{}
	at := began
	for range reads {
		id := zipf.Uint64()
		exact[id]++
		at = at.Add(100 * time.Microsecond) // 10,000 a second
		if rnd.IntN(every) == 0 {
			s.Add(id, nil, at)
		}
	}
	top := s.Top(10, every, at)
	if len(top) != 10 {
		t.Fatalf("%d keys: %+v", len(top), top)
	}
	for i, k := range top[:5] {
		share := exact[k.ID] / reads
		if k.ID != uint64(i) || math.Abs(k.Share-share) > 0.01+0.05*share || math.Abs(k.PerSecond-10_000*share) > 100+1500*share {
			t.Errorf("%d: %+v, exactly %f of the reads", i, k, share)
		}
	}
	for _, k := range top {
		if k.ID >= 12 || k.Name != nil {
			t.Errorf("%+v is among the top", k)
		}
	}
}

// Reads of keys that are all as frequent have no top.
func TestUniform(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s hotkeys.Sketch
	at := began
	for range 300_000 {
		at = at.Add(50 * time.Microsecond)
		s.Add(rnd.Uint64N(1_000_000), nil, at)
	}
	if top := s.Top(10, 8, at); len(top) > 0 {
		t.Errorf("%+v", top)
	}
}

// A key is on top as long as it is read, and leaves within minutes after that. Pauses of any length are decay, too.
func TestDecay(t *testing.T) {
	var s hotkeys.Sketch
	at := began
	read := func(id uint64, d time.Duration) {
		for end := at.Add(d); at.Before(end); at = at.Add(10 * time.Millisecond) {
			s.Add(id, nil, at)
		}
	}
	first := func() hotkeys.Key {
		top := s.Top(10, 1, at)
		if len(top) == 0 {
			return hotkeys.Key{}
		}
		return top[0]
	}
	read(1, 10*time.Minute)
	if k := first(); k.ID != 1 || k.Share != 1 || math.Abs(k.PerSecond-100) > 1 {
		t.Errorf("%+v", k)
	}
	read(2, 2*time.Minute)
	if k := first(); k.ID != 2 || math.Abs(k.Share-0.75) > 0.01 || math.Abs(k.PerSecond-75) > 1 {
		t.Errorf("%+v", k)
	}
	at = at.Add(time.Hour)
	if k := first(); k.ID != 0 {
		t.Errorf("an hour after the last read: %+v", k)
	}
	at = at.Add(1000 * time.Hour)
	read(3, time.Minute)
	if top := s.Top(10, 1, at); len(top) != 1 || top[0].ID != 3 || top[0].Share < 0.99 {
		t.Errorf("%+v", top)
	}
}

// Names are kept once they are given, up to a length, and go with their key.
func TestNames(t *testing.T) {
	var s hotkeys.Sketch
	long := strings.Repeat("x", hotkeys.MaxKey+1)
	for range 10 {
		s.Add(1, nil, began)
		s.Add(2, []byte("name"), began)
		s.Add(3, []byte(long), began)
		s.Add(4, []byte(""), began)
	}
	s.Add(1, []byte("late"), began)
	var got []string
	for _, k := range s.Top(10, 1, began) {
		got = append(got, fmt.Sprintf("%d %q %t", k.ID, k.Name, k.Cut))
	}
	slices.Sort(got)
	want := []string{`1 "late" false`, `2 "name" false`, fmt.Sprintf("3 %q true", long[1:]), `4 "" false`}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	for id := range uint64(10_000) { // every slot gets other keys
		s.Add(100+id%200, nil, began)
	}
	for _, k := range s.Top(1000, 1, began) {
		if k.ID >= 100 && k.Name != nil {
			t.Errorf("%d has the name of another key: %q", k.ID, k.Name)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, keys := range map[string]uint64{"few": 50, "many": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			var s hotkeys.Sketch
			b.ReportAllocs()
			for i := range uint64(b.N) {
				s.Add(i*0x9e3779b97f4a7c15%keys, nil, began)
			}
		})
	}
}
