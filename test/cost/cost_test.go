//go:build integration

package cost

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

var update = flag.Bool("update", false, "build the program with an empty cache, and write costs.tsv")

const (
	program  = "sequins/cmd/sequins"
	standard = "std"

	maxGrowth = 3   // seconds that a dependency may cost beyond the table
	maxTotal  = 140 // seconds that the first build may cost
	maxSize   = 45  // MB that the stripped program may have
)

// cost is what the packages of a group cost: the standard library, or a repository.
type cost struct {
	seconds float64 // of a processor
	size    float64 // of what is compiled, MB
}

// What a build costs differs from machine to machine and from run to run, and what it makes does not. So the test asks how much is
// compiled, and takes a MB of all dependencies for as expensive as the average one of the table: the dearest costs little more than twice as much.
func TestFirstBuild(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0")
	t.Setenv("GOFLAGS", "-trimpath -gcflags=all=-dwarf=false") // as all is compiled
	path := filepath.Join(t.TempDir(), "sequins")
	process.OutputOf(t, "go", "build", "-ldflags", "-s -w", "-o", path, program)
	if st, err := os.Stat(path); err != nil || st.Size() > maxSize*1e6 {
		t.Errorf("the program has %d bytes, of at most %d MB (%v)", st.Size(), maxSize, err)
	}
	groups, costs := compiled(t)
	if *update {
		measure(t, groups, costs)
		write(t, costs)
		return
	}
	table := read(t)
	total, size := 0.0, 0.0
	for _, c := range table {
		total, size = total+c.seconds, size+c.size
	}
	rate := total / size
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		more := (costs[name].size - table[name].size) * rate
		total += more
		if more > maxGrowth {
			t.Errorf("%s costs about %.1f s of the first build more than by costs.tsv. If it is worth that, run go test -tags integration ./test/cost -update", name, more)
		}
	}
	if total > maxTotal {
		t.Errorf("the first build costs %.0f s, of at most %d", total, maxTotal)
	}
	t.Logf("the first build costs %.0f s, by the speed of costs.tsv", total)
}

// compiled returns the group of each package of the program, and how much of each group is compiled.
func compiled(t *testing.T) (groups map[string]string, costs map[string]cost) {
	t.Helper()
	groups, costs = make(map[string]string), make(map[string]cost)
	listed := process.OutputOf(t, "go", "list", "-deps", "-export", "-json=ImportPath,Export,Standard,Module", program)
	for packages := json.NewDecoder(strings.NewReader(listed)); ; {
		var p struct {
			ImportPath, Export string
			Standard           bool
			Module             struct{ Path string }
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return groups, costs
		} else if err != nil {
			t.Fatal(err)
		}
		elements := strings.Split(p.Module.Path, "/")
		name := strings.Join(elements[:min(3, len(elements))], "/")
		if p.Standard {
			name = standard
		}
		groups[p.ImportPath] = name
		if p.Export != "" { // unsafe has nothing
			st, err := os.Stat(p.Export)
			expect.NoError(t, err)
			costs[name] = cost{size: costs[name].size + float64(st.Size())/1e6}
		}
	}
}

// measure builds the program with an empty cache, and sets the seconds that each group costs.
func measure(t *testing.T, groups map[string]string, costs map[string]cost) {
	t.Helper()
	dir := t.TempDir()
	graph := filepath.Join(dir, "graph.json")
	t.Setenv("GOCACHE", filepath.Join(dir, "cache"))
	t.Setenv("GOFLAGS", "") // as somebody new builds it
	process.OutputOf(t, "go", "build", "-debug-actiongraph", graph, "-o", filepath.Join(dir, "sequins"), program)
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys int64 // ns
	}
	data, err := os.ReadFile(graph)
	if err == nil {
		err = json.Unmarshal(data, &actions)
	}
	expect.NoError(t, err)
	for _, a := range actions {
		name := groups[a.Package]
		if a.Mode == "link" {
			name = "link"
		}
		if name != "" {
			c := costs[name]
			c.seconds += float64(a.CmdUser+a.CmdSys) / 1e9
			costs[name] = c
		}
	}
}

const file = "costs.tsv"

// write writes the table, the most expensive first. What costs next to nothing is left out.
func write(t *testing.T, costs map[string]cost) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(costs), func(a, b string) int { return int(1000 * (costs[b].seconds - costs[a].seconds)) }) {
		if c := costs[name]; c.seconds >= 0.1 {
			fmt.Fprintf(&b, "%.1f\t%.1f\t%s\n", c.seconds, c.size, name)
		}
	}
	expect.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
}

func read(t *testing.T) map[string]cost {
	t.Helper()
	data, err := os.ReadFile(file)
	expect.NoError(t, err)
	costs := make(map[string]cost)
	for line := range strings.Lines(string(data)) {
		var name string
		var c cost
		if _, err := fmt.Sscan(line, &c.seconds, &c.size, &name); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		costs[name] = c
	}
	return costs
}
