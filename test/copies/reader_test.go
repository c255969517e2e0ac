//go:build integration

package copies

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/process"
)

// roundPause is the pause between two rounds of a reader.
const roundPause = 250 * time.Millisecond

// statusRounds is how many rounds there are for each look at the status.
const statusRounds = 2

// A reader asks a node for all keys of a database, again and again, and for its status.
type reader struct {
	node  *process.Node
	db    string
	keys  []string
	begun time.Time
	stop  chan struct{}
	done  chan struct{}

	mu       sync.Mutex
	newest   int      // the newest generation of an answer
	last     round    // the last complete round
	rounds   int      // complete rounds
	timeline []string // each round that differs from the one before, and what the test has done
	absent   []string // answers without a key
	back     []string // answers of an older generation than the one before
	wrong    []string // other wrong answers
	problems []string // of the status, each once
	present  []string // the last problems of the status
}

// A round is what one answer for each key says.
type round struct {
	generations map[int]int // keys by the generation of their values
	absent      int         // keys without one
	failed      int
}

func (r round) String() string {
	var parts []string
	for _, g := range slices.Sorted(keysOf(r.generations)) {
		parts = append(parts, fmt.Sprintf("%d keys of version %d", r.generations[g], g))
	}
	if r.absent > 0 {
		parts = append(parts, fmt.Sprintf("%d keys are absent (404)", r.absent))
	}
	if r.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d requests failed", r.failed))
	}
	return strings.Join(parts, ", ")
}

func keysOf(m map[int]int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// read starts a reader, which ends with the test. If the test has failed, it prints the timeline.
func read(t testing.TB, node *process.Node, db string, keys []string) *reader {
	r := &reader{node: node, db: db, keys: keys, begun: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	t.Cleanup(func() {
		r.end()
		if t.Failed() {
			t.Logf("what the reader of %s saw:\n%s", db, strings.Join(append(r.timeline, r.wrong...), "\n"))
		}
	})
	return r
}

// end stops the reader.
func (r *reader) end() {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	<-r.done
}

func (r *reader) run() {
	defer close(r.done)
	c := r.node.Client()
	defer c.Close()
	targets := make([]string, len(r.keys))
	for i, key := range r.keys {
		targets[i] = "/" + r.db + "/" + key
	}
	tick := time.NewTicker(roundPause)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
		answers, err := c.GetAll(targets)
		r.note(answers, err)
		if i%statusRounds > 0 {
			continue
		}
		status, err := c.Do(http.MethodGet, "/", "Accept: application/json\r\n")
		if err == nil {
			r.noteStatus(status)
		}
	}
}

// note checks the answers of a round.
func (r *reader) note(answers []*process.Response, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := round{generations: map[int]int{}}
	for i, a := range answers {
		r.answer(&now, r.keys[i], a)
	}
	if err != nil {
		now.failed += len(r.keys) - len(answers)
		r.keep(&r.wrong, "%v", err)
	}
	if r.rounds == 0 || now.String() != r.last.String() {
		r.say("%s", now)
	}
	r.last = now
	r.rounds++
}

// answer checks one answer.
func (r *reader) answer(now *round, key string, a *process.Response) {
	var generation int
	_, err := fmt.Sscanf(string(a.Body), "%d ", &generation)
	switch {
	case a.Code == http.StatusNotFound:
		now.absent++
		r.keep(&r.absent, "%s of version %q", key, a.Version())
		return
	case a.Code != http.StatusOK || err != nil || string(a.Body) != value(generation, key):
		now.failed++
		r.keep(&r.wrong, "%s: %d of version %q: %.80q", key, a.Code, a.Version(), a.Body)
		return
	case generation < r.newest:
		r.keep(&r.back, "%s of generation %d after an answer of generation %d", key, generation, r.newest)
	}
	now.generations[generation]++
	r.newest = max(r.newest, generation)
}

// keep adds one of the first few faults of a kind.
func (r *reader) keep(kind *[]string, format string, args ...any) {
	const enough = 5
	if len(*kind) < enough {
		*kind = append(*kind, fmt.Sprintf("%6.2fs: ", time.Since(r.begun).Seconds())+fmt.Sprintf(format, args...))
	}
}

// say adds a line to the timeline. r.mu is held.
func (r *reader) say(format string, args ...any) {
	r.timeline = append(r.timeline, fmt.Sprintf("%6.2fs  ", time.Since(r.begun).Seconds())+fmt.Sprintf(format, args...))
}

// mark adds what the test does to the timeline.
func (r *reader) mark(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say("-- "+format, args...)
}

// noteStatus records the problems of a status.
func (r *reader) noteStatus(a *process.Response) {
	var s struct{ Problems []string }
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.Unmarshal(a.Body, &s); err != nil {
		r.keep(&r.wrong, "the status: %v: %.200q", err, a.Body)
		return
	}
	r.present = s.Problems
	for _, p := range s.Problems {
		if !slices.Contains(r.problems, p) {
			r.problems = append(r.problems, p)
			r.say("problem: %s", p)
		}
	}
}

// whole reports whether the last round had all keys of a generation.
func (r *reader) whole(generation int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.generations[generation] == len(r.keys)
}

// partial reports whether the last round had some keys of a generation.
func (r *reader) partial(generation int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.generations[generation] > 0
}

// state describes the last round.
func (r *reader) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.String()
}

// healthy reports whether the last status has no problem.
func (r *reader) healthy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.present) == 0
}

// said returns all problems so far.
func (r *reader) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.problems, "\n")
}
