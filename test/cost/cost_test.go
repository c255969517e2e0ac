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
	"strconv"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

var update = flag.Bool("update", false, "write costs.tsv")

const (
	program  = "sequins/cmd/sequins"
	standard = "std"
	linking  = "link"

	maxGrowth = 3   // seconds that a dependency may cost beyond the table
	maxTotal  = 140 // seconds that the first build may cost
	maxSize   = 45  // MB that the stripped program may have
)

// The costs are processor seconds. Those of this machine are scaled by what the standard library costs here and in the table.
func TestFirstBuild(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0")
	t.Setenv("GOFLAGS", "")
	dir := t.TempDir()
	costs := build(t, dir)
	if st, err := os.Stat(filepath.Join(dir, "sequins")); err != nil || st.Size() > maxSize*1e6 {
		t.Errorf("the program has %d bytes, of at most %d MB (%v)", st.Size(), maxSize, err)
	}
	if *update {
		write(t, costs)
		return
	}
	table := read(t)
	scale, total := table[standard]/costs[standard], 0.0
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		cost := costs[name] * scale
		total += cost
		if cost > table[name]+maxGrowth {
			t.Errorf("%s costs %.1f s of the first build, and %.1f s by costs.tsv. If it is worth that, run go test -tags integration ./test/cost -update", name, cost, table[name])
		}
	}
	if total > maxTotal {
		t.Errorf("the first build costs %.0f s, of at most %d", total, maxTotal)
	}
	t.Logf("the first build costs %.0f s, by the speed of costs.tsv", total)
}

// build builds the program into dir with an empty cache, and returns the seconds that each group of packages costs.
func build(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	groups := groups(t)
	graph := filepath.Join(dir, "graph.json")
	t.Setenv("GOCACHE", filepath.Join(dir, "cache"))
	process.OutputOf(t, "go", "build", "-trimpath", "-ldflags", "-s -w", "-debug-actiongraph", graph, "-o", filepath.Join(dir, "sequins"), program)
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys int64 // ns
	}
	data, err := os.ReadFile(graph)
	if err == nil {
		err = json.Unmarshal(data, &actions)
	}
	expect.NoError(t, err)
	costs := make(map[string]float64)
	for _, a := range actions {
		name := groups[a.Package]
		if a.Mode == "link" {
			name = linking
		}
		if name != "" {
			costs[name] += float64(a.CmdUser+a.CmdSys) / 1e9
		}
	}
	return costs
}

// groups returns the group of each package that is built: the standard library, or the repository of its module.
func groups(t *testing.T) map[string]string {
	t.Helper()
	groups := make(map[string]string)
	listed := process.OutputOf(t, "go", "list", "-deps", "-json=ImportPath,Standard,Module", program)
	for packages := json.NewDecoder(strings.NewReader(listed)); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Module     struct{ Path string }
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return groups
		} else if err != nil {
			t.Fatal(err)
		}
		elements := strings.Split(p.Module.Path, "/")
		groups[p.ImportPath] = strings.Join(elements[:min(3, len(elements))], "/")
		if p.Standard {
			groups[p.ImportPath] = standard
		}
	}
}

const file = "costs.tsv"

// write writes the table, the most expensive first. What costs next to nothing is left out.
func write(t *testing.T, costs map[string]float64) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(costs), func(a, b string) int { return int(1000 * (costs[b] - costs[a])) }) {
		if costs[name] >= 0.1 {
			fmt.Fprintf(&b, "%.1f\t%s\n", costs[name], name)
		}
	}
	expect.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
}

func read(t *testing.T) map[string]float64 {
	t.Helper()
	data, err := os.ReadFile(file)
	expect.NoError(t, err)
	costs := make(map[string]float64)
	for line := range strings.Lines(string(data)) {
		seconds, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if costs[name], err = strconv.ParseFloat(seconds, 64); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return costs
}
