package sequins

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// ordered are the packages whose files have an order: each uses only what those below it declare.
var ordered = []string{"node", "version", "cluster", "version/gate"}

// TestOrderOfFiles: no file of the ordered packages uses one that uses it, directly or through others.
func TestOrderOfFiles(t *testing.T) {
	imports := importer.ForCompiler(token.NewFileSet(), "gc", exports(t))
	for _, dir := range ordered {
		uses := usesOfFiles(t, dir, imports)
		for { // take away the files that use no other ones
			lowest := slices.DeleteFunc(slices.Sorted(maps.Keys(uses)), func(file string) bool { return len(uses[file]) > 0 })
			if len(lowest) == 0 {
				break
			}
			for _, file := range lowest {
				delete(uses, file)
				for _, used := range uses {
					delete(used, file)
				}
			}
		}
		for file, used := range uses {
			t.Errorf("%s/%s uses files that use it, directly or through others: %v", dir, file, used)
		}
	}
}

// exports returns a lookup of the compiled exports of the ordered packages and what they import.
func exports(t *testing.T) importer.Lookup {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-trimpath", Value: "true"}) {
		args = append(args, "-trimpath") // as this test is built, for the same reason as below
	}
	for _, dir := range ordered {
		args = append(args, "./"+dir)
	}
	list := exec.Command("go", args...)
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // as the program is built, so that it is not compiled once more
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// usesOfFiles returns for each file of a package, without tests, which others declare what it uses, and an example of each.
func usesOfFiles(t *testing.T, dir string, imports types.Importer) map[string]map[string]string {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	uses, files := make(map[string]map[string]string), []*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files, uses[filepath.Base(name)] = append(files, f), make(map[string]string)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := (&types.Config{Importer: imports}).Check(dir, set, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	for id, used := range info.Uses {
		from, to := filepath.Base(set.Position(id.Pos()).Filename), filepath.Base(set.Position(used.Pos()).Filename)
		if used.Pkg() == pkg && from != to {
			uses[from][to] = used.Name()
		}
	}
	return uses
}
