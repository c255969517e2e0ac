package sequins

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// What a type of the core may have at most, so that it can be held in the head: fields (with those that it embeds), methods, and fields
// that are booleans.
const (
	maxFields  = 20
	maxMethods = 40
	maxBools   = 5
)

// wide are the types that have more, and how many fields and methods: they must not grow.
var wide = map[string]struct{ fields, methods int }{
	"node.Node":    {25, 16}, // the process: its servers, listeners and goroutines, and what the status asks it
	"node.Options": {40, 3},  // with what can be reloaded
}

// Limits of everything outside of tests, in lines.
const (
	maxFunction = 70
	maxPackage  = 4000
)

// TestSizes holds functions and packages to their limits.
func TestSizes(t *testing.T) {
	for name, p := range parseTree(t) {
		for _, function := range p.long {
			t.Errorf("%s; the limit is %d", function, maxFunction)
		}
		if p.lines > maxPackage {
			t.Errorf("%s has %d lines; the limit is %d", name, p.lines, maxPackage)
		}
	}
}

// TestTypesOfTheCore holds the types of the packages that decide what is served to their limits.
func TestTypesOfTheCore(t *testing.T) {
	for _, dir := range []string{"node", "version", "cluster", "version/gate"} {
		types := parseTypes(t, dir)
		if len(types) < 5 {
			t.Errorf("found %d types in %s", len(types), dir)
		}
		for name, typ := range types {
			more := wide[dir+"."+name]
			limit := max(maxFields, more.fields)
			fields, bools := typ.count(types)
			if fields > limit || more.fields > fields {
				t.Errorf("%s.%s has %d fields, with those that it embeds; the limit is %d", dir, name, fields, limit)
			}
			if bools > maxBools && more.fields == 0 {
				t.Errorf("%s.%s has %d booleans; the limit is %d: a type with named values says which of them go together", dir, name, bools, maxBools)
			}
			if limit := max(maxMethods, more.methods); typ.methods > limit {
				t.Errorf("%s.%s has %d methods; the limit is %d", dir, name, typ.methods, limit)
			}
		}
	}
}

// A coreType is a struct of a package.
type coreType struct {
	fields, bools, methods int
	embeds                 []string
}

// count returns the numbers of fields and of booleans, with those of embedded structs of the same package.
func (c *coreType) count(types map[string]*coreType) (fields, bools int) {
	fields, bools = c.fields, c.bools
	for _, name := range c.embeds {
		if e := types[name]; e != nil {
			f, b := e.count(types)
			fields, bools = fields+f, bools+b
		} else {
			fields++
		}
	}
	return fields, bools
}

// parseTypes returns the structs of a package, without those of its tests.
func parseTypes(t *testing.T, dir string) map[string]*coreType {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	types, methods := make(map[string]*coreType), make(map[string]int)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					types[n.Name.Name] = newCoreType(s)
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[typeName(n.Recv.List[0].Type)]++
				}
			}
			return true
		})
	}
	for name, typ := range types {
		typ.methods = methods[name]
	}
	return types
}

func newCoreType(s *ast.StructType) *coreType {
	c := &coreType{}
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 {
			c.embeds = append(c.embeds, typeName(field.Type))
			continue
		}
		c.fields += len(field.Names)
		if id, ok := field.Type.(*ast.Ident); ok && id.Name == "bool" {
			c.bools += len(field.Names)
		}
	}
	return c
}

// typeName returns the name of a type of the same package, also behind a pointer; "" for others.
func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
