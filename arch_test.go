package sequins

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is one package and the packages of this module that it may import outside of tests.
type layer struct {
	name    string
	imports []string
}

// layers lists the packages from top to bottom. A package may import only packages below it that its row names. A new
// package gets a row here before it gets a file.
var layers = []layer{
	{".", nil},
	{"cmd/sequins", []string{"blocks", "client", "config", "input/finished", "internal/fsys", "internal/human", "internal/names", "internal/nearest", "internal/parallel", "internal/sleep", "internal/term", "load", "load/build", "load/loadproc", "node/daemon", "observe/status", "reads/diff", "server/auth", "shard", "source", "version/discovery", "version/pin"}},
	{"node/daemon", []string{"blocks", "cluster", "config", "internal/sleep", "internal/wire", "load", "load/loadproc", "node", "node/events", "node/turns", "observe/metrics", "observe/status", "observe/tracing", "proxy", "server", "server/auth", "shard", "source", "source/azure", "source/gcs", "source/hdfs", "source/local", "source/s3", "store", "version/gate", "zk"}},
	{"client", []string{"observe/status", "shard", "internal/http1", "internal/names", "internal/sleep", "internal/term", "internal/wire"}},
	{"config", []string{"node/turns", "internal/fsys", "internal/names", "internal/nearest", "internal/term"}},
	{"load/build", []string{"load", "shard", "store", "input/finished", "blocks", "source", "internal/fsys", "internal/names", "internal/parallel"}},
	{"node", []string{"server", "server/resp", "observe/peerstatus", "observe/status", "reads", "reads/diff", "version/discovery", "node/events", "version/gate", "version/pin", "version/report", "cluster/transfer", "node/turns", "node/upkeep", "version", "load/loadproc", "load", "shard", "store", "blocks", "source", "observe/metrics", "observe/tracing", "internal/conns", "internal/human", "internal/names", "internal/sleep", "internal/content", "internal/wire"}},
	{"server", []string{"docs", "server/statuspage", "observe/peerstatus", "observe/status", "server/internal/batchkeys", "server/internal/negotiate", "reads", "server/auth", "proxy", "blocks", "observe/metrics", "observe/tracing", "internal/conns", "internal/http1", "internal/limitlog", "internal/names", "internal/wire"}},
	{"server/resp", []string{"reads", "server/auth", "blocks", "observe/metrics", "observe/tracing", "internal/conns", "internal/limitlog", "internal/names"}},
	{"server/internal/batchkeys", []string{"internal/wire"}},
	{"server/internal/negotiate", nil},
	{"observe/peerstatus", []string{"observe/status", "internal/parallel", "internal/sleep", "internal/wire"}},
	{"server/statuspage", []string{"observe/status", "internal/human"}},
	{"docs", nil},
	{"reads/diff", []string{"reads", "internal/names"}},
	{"reads", []string{"version", "proxy", "blocks", "observe/metrics", "observe/tracing", "internal/http1", "internal/limitlog", "internal/content", "internal/merge", "internal/sleep", "internal/wire"}},
	{"server/auth", []string{"internal/names"}},
	{"node/events", []string{"observe/metrics", "observe/status", "internal/sleep", "internal/wire"}},
	{"node/upkeep", []string{"version", "blocks", "internal/sleep"}},
	{"cluster", []string{"version", "version/report", "zk", "shard", "observe/status", "internal/fsys", "internal/content", "internal/sleep"}},
	{"cluster/transfer", []string{"version", "shard", "store", "blocks", "observe/metrics", "internal/parallel", "internal/content", "internal/wire"}},
	{"version/gate", []string{"version", "version/report", "store", "blocks", "observe/status", "internal/human", "internal/content"}},
	{"version/discovery", []string{"version/pin", "load", "store", "source", "internal/human", "internal/sleep", "internal/content"}},
	{"test/versions", []string{"blocks", "internal/content", "shard", "test/expect", "version"}},
	{"version", []string{"version/pin", "version/report", "shard", "blocks", "internal/content"}},
	{"version/report", []string{"store", "internal/content"}},
	{"node/turns", nil},
	{"test/speed", []string{"load", "test/expect", "test/sequencefiles", "shard", "store", "blocks", "source"}},
	{"load/loadproc", []string{"load/unchanged", "load", "observe/status", "shard", "store", "source", "observe/metrics", "internal/human", "internal/fsys", "internal/content"}},
	{"load/unchanged", []string{"load", "store", "blocks", "source", "internal/parallel"}},
	{"load", []string{"input/finished", "shard", "store", "load/extsort", "blocks", "source", "input/sequencefile", "input/sparkey", "input/avro", "input/parquet",
		"internal/fsys", "internal/pagecache", "internal/parallel", "internal/render", "internal/content"}},
	{"test/single", nil},
	{"test/redis", nil},
	{"test/cluster", nil},
	{"test/alerts", nil},
	{"test/browser", nil},
	{"test/terminal", nil},
	{"test/web", nil},
	{"test/hdfs", nil},
	{"test/s3", nil},
	{"test/copies", nil},
	{"test/spark", []string{"test/expect", "test/harness"}},
	{"test/venv", []string{"test/expect", "test/once", "test/process"}},
	{"test/chart", []string{"test/process"}},
	{"test/collector", nil},
	{"test/checker", nil},
	{"test/sourcetest", []string{"source", "test/expect", "test/noise"}},
	{"test/objectstest", []string{"source", "source/objects", "test/expect", "test/gateway", "test/noise"}},
	{"test/clouds", []string{"test/expect", "test/gateway", "test/once", "test/ports", "test/process"}},
	{"test/gateway", []string{"test/expect", "test/once", "test/ports", "test/process"}},
	{"test/packaging", nil},
	{"test/release", nil},
	{"test/cost", nil},
	{"test/writers", nil},
	{"test/corpus", nil},
	{"test/kubernetes", nil},
	{"test/clients", nil},
	{"test/manual", nil},
	{"test/harness", []string{"test/expect", "test/netns", "test/once", "test/process"}},
	{"test/netns", nil},
	{"test/process", []string{"test/expect", "test/once", "test/ports"}},
	{"test/authority", []string{"test/expect"}},
	{"test/blocktest", []string{"test/expect"}},
	{"test/contents", []string{"internal/content"}},
	{"test/sparkeylog", []string{"input/sparkey"}},
	{"test/sequencefiles", []string{"test/expect"}},
	{"test/expect", nil},
	{"test/noise", nil},
	{"test/ports", nil},
	{"test/once", nil},
	{"test/mutate", nil},
	{"test/balance", nil},
	{"zk", []string{"internal/sleep", "zk/internal/wire", "internal/content"}},
	{"zk/internal/wire", nil},
	{"test/zktest", nil},
	{"store", []string{"blocks", "internal/fsys", "internal/names", "internal/parallel", "internal/content"}},
	{"load/extsort", []string{"internal/fsys", "internal/merge", "internal/offheap", "internal/pagecache"}},
	{"blocks", []string{"blocks/internal/decode", "blocks/internal/file", "blocks/internal/filter", "blocks/internal/fsst", "blocks/internal/index"}},
	{"blocks/internal/file", nil},
	{"blocks/internal/fsst", nil},
	{"blocks/internal/filter", []string{"blocks/internal/decode", "blocks/internal/spill"}},
	{"blocks/internal/index", []string{"blocks/internal/decode", "blocks/internal/spill", "internal/offheap"}},
	{"blocks/internal/decode", nil},
	{"blocks/internal/spill", nil},
	{"input/finished", []string{"shard", "source"}},
	{"source/local", []string{"source", "internal/fsys", "internal/pagecache"}},
	{"source/hdfs", []string{"source", "internal/sleep"}},
	{"source/s3", []string{"source", "source/objects"}},
	{"source/gcs", []string{"source/objects"}},
	{"source/azure", []string{"source", "source/objects"}},
	{"source/objects", []string{"source", "internal/sleep", "internal/names", "internal/wire"}},
	{"source", []string{"internal/human", "internal/names"}},
	{"input/sequencefile", []string{"internal/bzip2", "internal/lookahead", "internal/unpack"}},
	{"input/sparkey", []string{"internal/lookahead", "internal/unpack"}},
	{"input/avro", []string{"internal/bzip2", "internal/lookahead", "internal/render", "internal/unpack"}},
	{"input/parquet", []string{"internal/render", "internal/unpack"}},
	{"proxy", []string{"observe/metrics", "observe/tracing", "internal/http1", "internal/wire"}},
	{"observe/metrics", []string{"observe/status", "internal/sleep"}},
	{"observe/status", []string{"version/pin", "shard", "internal/human", "internal/names"}},
	{"version/pin", []string{"internal/names"}},
	{"shard", nil},
	{"observe/tracing", nil},
	{"test/faultfs", []string{"internal/fsys"}},
	{"internal/fsys", nil},
	{"internal/render", []string{"internal/human"}},
	{"internal/bzip2", []string{"internal/unpack"}},
	{"internal/lookahead", nil},
	{"internal/merge", nil},
	{"internal/unpack", nil},
	{"internal/conns", []string{"internal/limitlog"}},
	{"internal/content", []string{"internal/names"}},
	{"internal/term", []string{"internal/human"}},
	{"internal/human", nil},
	{"internal/http1", nil},
	{"internal/limitlog", nil},
	{"internal/names", nil},
	{"internal/nearest", nil},
	{"internal/wire", nil},
	{"internal/offheap", nil},
	{"internal/pagecache", nil},
	{"internal/parallel", nil},
	{"internal/sleep", nil},
}

// forbiddenNames are names that do not say what a package owns.
var forbiddenNames = []string{"util", "utils", "common", "base", "helper", "helpers"}

// testModules may be imported by tests only.
var testModules = []string{"github.com/Shopify/toxiproxy", "github.com/colinmarc/sequencefile", "github.com/dsnet/compress", "github.com/getkin/kin-openapi", "github.com/google/go-cmp", "github.com/redis/go-redis", "go.opentelemetry.io/proto", "go.uber.org/goleak", "go.yaml.in/yaml"}

func TestLayers(t *testing.T) {
	packages := parseTree(t)
	if len(packages) < 2 {
		t.Fatalf("found %d packages, want the whole module", len(packages))
	}
	for _, violation := range violations(layers, packages) {
		t.Error(violation)
	}
}

var (
	documentedPackage = regexp.MustCompile("`([a-z0-9/]+)`")
	diagram           = regexp.MustCompile("(?s)```mermaid\nflowchart TD\n(.*?)```")
)

// The table of packages in ARCHITECTURE.md lists all packages, and its diagram shows only existing imports.
func TestArchitectureDocument(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := parseTree(t)
	documented := map[string]bool{".": true}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, name := range documentedPackage.FindAllStringSubmatch(line, -1) {
				documented[name[1]] = true
			}
		}
	}
	for name := range packages {
		if !documented[name] {
			t.Errorf("%s is not in the table of ARCHITECTURE.md", name)
		}
	}
	for name := range documented {
		if packages[name] == nil && name != "testdata" {
			t.Errorf("%s is in the table of ARCHITECTURE.md, and is no package", name)
		}
	}
	drawn := diagram.FindSubmatch(text)
	if drawn == nil {
		t.Fatal("ARCHITECTURE.md has no diagram of the packages")
	}
	for line := range strings.Lines(string(drawn[1])) {
		groups := strings.Split(strings.TrimSpace(line), " --> ")
		for i := range len(groups) - 1 {
			checkArrows(t, packages, strings.Split(groups[i], " & "), strings.Split(groups[i+1], " & "))
		}
	}
}

// checkArrows checks that each package of from imports each package of to.
func checkArrows(t *testing.T, packages map[string]*pkg, from, to []string) {
	t.Helper()
	for _, above := range from {
		for _, below := range to {
			if packages[above] == nil || packages[below] == nil || !slices.Contains(packages[above].imports, "sequins/"+below) {
				t.Errorf("the diagram of ARCHITECTURE.md has an arrow from %s to %s, and there is no such import", above, below)
			}
		}
	}
}

// Each tree is wrong in one way, which violations must find.
func TestViolationsAreFound(t *testing.T) {
	good := func() map[string]*pkg {
		return map[string]*pkg{
			"node":   {doc: true, imports: []string{"sequins/server", "fmt"}},
			"server": {doc: true},
		}
	}
	plan := []layer{{"node", []string{"server"}}, {"server", nil}}
	tests := map[string]struct {
		plan  []layer
		spoil func(map[string]*pkg)
		want  string
	}{
		"as planned":     {plan, func(map[string]*pkg) {}, ""},
		"import upwards": {plan, func(p map[string]*pkg) { p["server"].imports = []string{"sequins/node"} }, "server imports node"},
		"new package":    {plan, func(p map[string]*pkg) { p["extra"] = &pkg{doc: true} }, "extra has no row"},
		"gone package":   {plan, func(p map[string]*pkg) { delete(p, "server") }, "server has a row"},
		"bad name":       {plan, func(p map[string]*pkg) { p["server/util"] = &pkg{doc: true} }, "server/util: util says nothing"},
		"unused row":     {plan, func(p map[string]*pkg) { p["node"].imports = nil }, "the row of node names server, which it does not import"},
		"no comment":     {plan, func(p map[string]*pkg) { p["node"].doc = false }, "node has no package comment"},
		"skipped test":   {plan, func(p map[string]*pkg) { p["node"].skips = []string{"x_test.go:3"} }, "x_test.go:3 skips"},
		"test module":    {plan, func(p map[string]*pkg) { p["node"].imports = []string{"go.uber.org/goleak"} }, "node imports go.uber.org/goleak"},
		"plan upwards":   {[]layer{{"node", nil}, {"server", []string{"node"}}}, func(p map[string]*pkg) { p["node"].imports = nil }, "the row of server names node"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			packages := good()
			test.spoil(packages)
			got := strings.Join(violations(test.plan, packages), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("violations:\n%s\nwant %q", got, test.want)
			}
		})
	}
}

// pkg describes one package.
type pkg struct {
	imports []string // of its files other than tests
	doc     bool     // it has a package comment
	skips   []string // where its tests skip themselves
	starts  []string // where it or its tests start goroutines
	lines   int      // of its files other than tests
	long    []string // its functions with more than maxFunction lines, other than tests
}

// violations lists the differences between the tree and the plan.
func violations(plan []layer, packages map[string]*pkg) []string {
	var found []string
	rows := map[string]layer{}
	for i, r := range plan {
		rows[r.name] = r
		for _, imported := range r.imports {
			if !slices.ContainsFunc(plan[i+1:], func(below layer) bool { return below.name == imported }) {
				found = append(found, fmt.Sprintf("the row of %s names %s, which is not below it", r.name, imported))
			}
		}
		if packages[r.name] == nil {
			found = append(found, fmt.Sprintf("%s has a row in the plan and no files", r.name))
		}
	}
	for _, r := range plan {
		for _, imported := range r.imports {
			if p := packages[r.name]; p != nil && !slices.Contains(p.imports, "sequins/"+imported) {
				found = append(found, fmt.Sprintf("the row of %s names %s, which it does not import", r.name, imported))
			}
		}
	}
	for name, p := range packages {
		row, planned := rows[name]
		if !planned {
			found = append(found, name+" has no row in the plan")
		}
		found = append(found, violationsOf(row, name, p)...)
	}
	slices.Sort(found)
	return found
}

func violationsOf(row layer, name string, p *pkg) []string {
	var found []string
	for _, imported := range p.imports {
		ours, isOurs := strings.CutPrefix(imported, "sequins/")
		if isOurs && !slices.Contains(row.imports, ours) {
			found = append(found, fmt.Sprintf("%s imports %s, which its row does not name", name, ours))
		}
		if isTestModule(imported) && !strings.HasSuffix(name, "test") && !strings.HasPrefix(name, "test/") {
			found = append(found, fmt.Sprintf("%s imports %s outside of tests", name, imported))
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(forbiddenNames, part) {
			found = append(found, fmt.Sprintf("%s: %s says nothing about what a package owns", name, part))
		}
	}
	if !p.doc {
		found = append(found, name+" has no package comment")
	}
	for _, where := range p.skips {
		found = append(found, where+" skips a test")
	}
	return found
}

func isTestModule(imported string) bool {
	return slices.ContainsFunc(testModules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") })
}

// parseTree reads every Go file below this directory, for all operating systems.
func parseTree(t *testing.T) map[string]*pkg {
	t.Helper()
	packages := map[string]*pkg{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && isElsewhere(file, entry.Name()) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		name := path.Dir(filepath.ToSlash(file))
		if packages[name] == nil {
			packages[name] = &pkg{}
		}
		return packages[name].add(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// isElsewhere reports whether a directory is not a package of this module.
func isElsewhere(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || strings.HasPrefix(name, ".") || name == "testdata"
}

// add adds a file to the description of its package.
func (p *pkg) add(file string) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var imports []string
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		imports = append(imports, imported)
	}
	p.starts = append(p.starts, goroutines(files, f)...)
	if strings.HasSuffix(file, "_test.go") {
		p.skips = append(p.skips, skips(files, f)...)
		return nil
	}
	p.imports = append(p.imports, imports...)
	p.lines += files.File(f.Pos()).LineCount()
	for _, d := range f.Decls {
		n := files.Position(d.End()).Line - files.Position(d.Pos()).Line + 1
		if fn, ok := d.(*ast.FuncDecl); ok && n > maxFunction {
			p.long = append(p.long, fmt.Sprintf("%s: %s has %d lines", file, fn.Name.Name, n))
		}
	}
	p.doc = p.doc || f.Doc != nil && len(f.Doc.List) > 0
	return nil
}

// skips finds the calls that leave a test out: t.Skip and its kin, on anything that is called like a
// testing.T, B, F or TB.
func skips(files *token.FileSet, f *ast.File) []string {
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		receiver := ""
		switch x := call.X.(type) {
		case *ast.Ident:
			receiver = x.Name
		case *ast.SelectorExpr:
			receiver = x.Sel.Name
		}
		isTest := slices.Contains([]string{"t", "b", "f", "tb"}, receiver)
		isSkip := slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, call.Sel.Name)
		if isTest && isSkip {
			found = append(found, files.Position(call.Pos()).String())
		}
		return true
	})
	return found
}

// goroutines finds go statements and calls of methods named Go, as of sync.WaitGroup.
func goroutines(files *token.FileSet, f *ast.File) []string {
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, files.Position(n.Pos()).String())
		case *ast.SelectorExpr:
			if n.Sel.Name == "Go" {
				found = append(found, files.Position(n.Pos()).String())
			}
		}
		return true
	})
	return found
}

// TestSequential holds the packages that make test runs without the race detector to having no goroutines.
func TestSequential(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(makefile), "\nSEQUENTIAL := ")
	list, _, _ = strings.Cut(list, "\n")
	packages := parseTree(t)
	for _, name := range strings.Fields(list) {
		p := packages[strings.TrimPrefix(name, "./")]
		if p == nil {
			t.Errorf("%s is no package", name)
		} else if len(p.starts) > 0 {
			t.Errorf("%s starts goroutines and is tested without the race detector: %v", name, p.starts)
		}
	}
	if list == "" || len(packages["node"].starts) == 0 {
		t.Error("found no SEQUENTIAL in Makefile, or no goroutine in node")
	}
}

// What counts as skipping, and what does not.
func TestSkipsAreFound(t *testing.T) {
	const source = `package x
func a(t *testing.T) { t.Skip("no") }
func b(h holder) { h.t.SkipNow() }
func c(tb testing.TB) { defer tb.Skip() }
func d(f *testing.F) { f.Skipf("%d", 1) }
func e(r *reader) { r.Skip(4) }
func g(t *testing.T) { t.Log("Skip") }
`
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "x_test.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, where := range skips(files, f) {
		lines = append(lines, strings.Split(where, ":")[1])
	}
	if got := strings.Join(lines, " "); got != "2 3 4 5" {
		t.Errorf("skips on lines %s, want 2 3 4 5", got)
	}
}
