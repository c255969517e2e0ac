package turns_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/node/turns"
)

func granted(t *turns.Turn) bool {
	select {
	case <-t.Granted():
		return true
	default:
		return false
	}
}

// Retries come last, of the others the greatest priority first, equal ones in the order in which they entered, and who has a place keeps it.
func TestOrder(t *testing.T) {
	q := turns.New(1)
	first := q.Turn()
	first.Set(turns.Terms{})
	waiting := map[string]*turns.Turn{}
	for i, priority := range []int{0, 5, -1, 5, 0, 9} {
		turn := q.Turn()
		turn.Set(turns.Terms{Priority: priority, Retry: i%5 == 0})
		waiting[fmt.Sprintf("%d/%d", i, priority)] = turn
	}
	var order []string
	for turn := first; len(waiting) > 0; {
		for _, each := range waiting {
			if granted(each) {
				t.Fatal("there was no free place")
			}
		}
		turn.Leave()
		for name, each := range waiting {
			if granted(each) {
				order, turn = append(order, name), each
				delete(waiting, name)
			}
		}
	}
	if got, want := strings.Join(order, " "), "1/5 3/5 4/0 2/-1 5/9 0/0"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}

// A turn that has not been set has not entered, and one that has left takes no place.
func TestOutside(t *testing.T) {
	q := turns.New(1)
	outside, gone, turn := q.Turn(), q.Turn(), q.Turn()
	gone.Leave()
	gone.Set(turns.Terms{})
	if granted(gone) || granted(outside) {
		t.Error("it has a place")
	}
	turn.Set(turns.Terms{})
	if !granted(turn) {
		t.Error("it has no place")
	}
	turn.Leave()
	turn.Leave()
	outside.Set(turns.Terms{})
	second := q.Turn()
	second.Set(turns.Terms{})
	if !granted(outside) || granted(second) {
		t.Error("leaving twice frees two places")
	}
}

// In a bubble, it is midnight UTC at first.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := turns.New(1)
		night, noon := q.Turn(), q.Turn()
		defer night.Leave()
		defer noon.Leave()
		night.Set(turns.Terms{Priority: 9, Windows: parse(t, "22:00-23:00 UTC")})
		noon.Set(turns.Terms{Windows: parse(t, "12:00-13:00 UTC")})
		look := func() {
			night.Set(turns.Terms{Priority: 9, Windows: parse(t, "22:00-23:00 UTC")})
			noon.Set(turns.Terms{Windows: parse(t, "12:00-13:00 UTC")})
		}
		time.Sleep(12*time.Hour - time.Nanosecond)
		look()
		if granted(noon) {
			t.Error("noon has a place before noon")
		}
		time.Sleep(time.Nanosecond)
		look()
		if !granted(noon) || granted(night) {
			t.Errorf("at noon: %v, %v", granted(noon), granted(night))
		}
		time.Sleep(11 * time.Hour) // past the end of the night's window
		noon.Leave()
		if granted(night) {
			t.Error("its window had been closed again when the place was free")
		}
		night.Set(turns.Terms{})
		if !granted(night) {
			t.Error("it needs no window any more")
		}
	})
}

// Of turns that wait for the same window the one with the greatest priority comes first, and an urgent one without a window
// passes them.
func TestWindowOpensForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := turns.New(1)
		low, high, urgent := q.Turn(), q.Turn(), q.Turn()
		for turn, priority := range map[*turns.Turn]int{low: 0, high: 1} {
			turn.Set(turns.Terms{Priority: priority, Windows: parse(t, "01:00-02:00 UTC")})
		}
		urgent.Set(turns.Terms{})
		if !granted(urgent) {
			t.Error("the urgent one waits")
		}
		urgent.Leave()
		time.Sleep(time.Hour)
		low.Set(turns.Terms{Windows: parse(t, "01:00-02:00 UTC")})
		if !granted(high) || granted(low) {
			t.Errorf("low %v, high %v", granted(low), granted(high))
		}
		high.Leave()
		if !granted(low) {
			t.Error("the other one waits on")
		}
		low.Leave()
	})
}

// modelTurn is a turn in the naive model of a queue: a list that is searched after every step.
type modelTurn struct {
	turn   *turns.Turn
	name   int
	terms  turns.Terms
	placed bool
}

// modelQueue is the naive model.
type modelQueue struct {
	places int
	turns  []*modelTurn // in the order of entering
}

func (m *modelQueue) decide(now time.Time) {
	for {
		used := 0
		var best *modelTurn
		for _, t := range m.turns {
			switch {
			case t.placed:
				used++
			case t.terms.Windows.Next(now).Equal(now) && (best == nil || before(t.terms, best.terms)):
				best = t
			}
		}
		if best == nil || used >= m.places {
			return
		}
		best.placed = true
	}
}

func before(a, b turns.Terms) bool {
	return b.Retry && !a.Retry || a.Retry == b.Retry && a.Priority > b.Priority
}

// Random walks: turns enter, change their terms, yield and leave, and time passes, after which they are set again.
// After each step the same turns have places as in the model.
func TestWalks(t *testing.T) {
	texts := []string{"", "01:00-02:00 UTC", "02:00-12:00 UTC", "22:00-06:00 UTC", "00:00-00:01,05:00-05:30 UTC"}
	var all []turns.Windows
	for _, text := range texts {
		all = append(all, parse(t, text))
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { walk(t, rand.New(rand.NewPCG(seed, 0)), all) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func walk(t *testing.T, r *rand.Rand, windows []turns.Windows) {
	m := modelQueue{places: 1 + r.IntN(3)}
	q := turns.New(m.places)
	for step := range 100 {
		what := walkStep(&m, q, r, step, windows)
		m.decide(time.Now())
		for _, each := range m.turns {
			if granted(each.turn) != each.placed {
				t.Errorf("step %d, %s: turn %d has a place: %v, want %v", step, what, each.name, granted(each.turn), each.placed)
			}
		}
		if t.Failed() {
			break
		}
	}
	for _, each := range m.turns {
		each.turn.Leave()
	}
}

// walkStep does one thing with both queues.
func walkStep(m *modelQueue, q *turns.Queue, r *rand.Rand, step int, windows []turns.Windows) string {
	terms := turns.Terms{Retry: r.IntN(3) == 0, Priority: r.IntN(3), Windows: windows[r.IntN(len(windows))]}
	i := r.IntN(len(m.turns) + 1)
	switch kind := r.IntN(5); {
	case kind == 0 && len(m.turns) < 20:
		t := q.Turn()
		t.Set(terms)
		m.turns = append(m.turns, &modelTurn{t, step, terms, false})
		return "enter"
	case kind == 1 && i < len(m.turns):
		t := m.turns[i]
		t.turn.Set(terms)
		if !t.placed {
			t.terms = terms
		}
		return "set"
	case kind == 2 && i < len(m.turns):
		m.turns[i].turn.Leave()
		m.turns = slices.Delete(m.turns, i, i+1)
		return "leave"
	case kind == 3 && i < len(m.turns) && m.turns[i].placed:
		t := m.turns[i]
		t.turn.Yield()
		m.turns = slices.Delete(m.turns, i, i+1)
		m.decide(time.Now())
		t.terms, t.placed = terms, false
		t.turn.Set(terms)
		m.turns = append(m.turns, t)
		return "yield"
	default: // the model decides only at the end of the time, so that no window opens or closes within it but at its end
		for range r.IntN(12) {
			time.Sleep(30 * time.Minute)
			for _, each := range m.turns {
				each.turn.Set(each.terms)
			}
			m.decide(time.Now())
		}
		return "time passes"
	}
}
