//go:build integration

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sequins/test/expect"
)

// TestTableOfValues holds the table of README.md against values.yaml: each value is there, with its comment and its default.
func TestTableOfValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Dir(), "values.yaml"))
	expect.NoError(t, err)
	var doc yaml.Node
	expect.NoError(t, yaml.Unmarshal(text, &doc))
	rows := tableOf(t, "", doc.Content[0])
	if len(rows) < 50 {
		t.Fatalf("%d values", len(rows))
	}
	path := filepath.Join(Dir(), "README.md")
	readme, err := os.ReadFile(path)
	expect.NoError(t, err)
	before, after, found := strings.Cut(string(readme), "\n| value | default | meaning |\n|---|---|---|\n")
	if !found {
		t.Fatalf("%s has no table of values", path)
	}
	_, after, _ = strings.Cut(after, "\n\n")
	compare(t, path, before+"\n| value | default | meaning |\n|---|---|---|\n"+strings.Join(rows, "\n")+"\n\n"+after)
}

var comment = regexp.MustCompile(`(?m)^# ?`)

// tableOf returns a row for each value of a map that has a comment; a map without one is searched.
func tableOf(t *testing.T, path string, node *yaml.Node) (rows []string) {
	t.Helper()
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		_, says, found := strings.Cut(key.HeadComment, "# -- ")
		if found {
			says = strings.Join(strings.Fields(comment.ReplaceAllString(says, "")), " ")
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", name, defaultOf(t, value), says))
		}
		switch nested := value.Kind == yaml.MappingNode && len(value.Content) > 0; {
		case nested && commented(value):
			rows = append(rows, tableOf(t, name, value)...)
		case !found:
			t.Errorf("values.yaml:%d: %s has no comment", key.Line, name)
		}
	}
	return rows
}

// commented reports whether the values of a map have comments of their own.
func commented(node *yaml.Node) bool {
	for i := 0; i < len(node.Content); i += 2 {
		if strings.Contains(node.Content[i].HeadComment, "# -- ") || node.Content[i+1].Kind == yaml.MappingNode && commented(node.Content[i+1]) {
			return true
		}
	}
	return false
}

func defaultOf(t *testing.T, value *yaml.Node) string {
	t.Helper()
	var v any
	expect.NoError(t, value.Decode(&v))
	if v == nil || v == "" || value.Kind == yaml.MappingNode && commented(value) {
		return ""
	}
	text, err := json.Marshal(v)
	expect.NoError(t, err)
	return "`" + strings.Trim(string(text), `"`) + "`"
}
