package config

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

var update = flag.Bool("update", false, "rewrite docs/CONFIGURATION.md")

const manualPath = "../docs/CONFIGURATION.md"

const manualHead = `# Configuration

Every key of the configuration file. This page is generated from [sequins.conf.example](../sequins.conf.example) by
` + "`go test ./config -update`" + `. Each key has its default and, if that signal changes the key, SIGHUP in parentheses.

`

// CONFIGURATION.md is what manual makes of the example, and has every key.
func TestManual(t *testing.T) {
	raw, err := os.ReadFile(examplePath)
	expect.NoError(t, err)
	want := manual(string(raw))
	for _, key := range keys() {
		name := key.key[strings.LastIndexByte(key.key, '.')+1:]
		if !strings.Contains(want, "\n- `"+name+"` (") {
			t.Errorf("%s is not in it", key.key)
		}
	}
	if *update {
		expect.NoError(t, os.WriteFile(manualPath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(manualPath)
	expect.NoError(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got), rewritten by -update:\n%s", manualPath, diff)
	}
}

// Text that introduces a table stands below its heading, text behind the last key below one of its own, and the keys
// of a database have no defaults but those that they inherit.
func TestManualSections(t *testing.T) {
	page := manual(`# The file.

# The first key,
# of docs/DATA.md.
# first = 1

# Has no default.
required = "x"

[storage]

# The last of storage. [SIGHUP]
# size = 2

# About databases.
# [db.example]

# Overrides size of [storage]. [SIGHUP]
# size = 2

# Old keys.
`)
	want := manualHead + `The file.

## Top level

- ` + "`first` (`1`)" + `: The first key,
  of [DATA.md](DATA.md).
- ` + "`required` (example: `\"x\"`)" + `: Has no default.

## [storage]

- ` + "`size` (`2`, SIGHUP)" + `: The last of storage.

## [db.NAME]

About databases.

- ` + "`size` (inherited, SIGHUP)" + `: Overrides size of [storage].

## Retired keys

Old keys.
`
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// chapter is a page of the manual that is being made from an example.
type chapter struct {
	out   strings.Builder
	prose []string // that has been read and not written
	keys  int
}

// pageName is the name of another page in the example.
var pageName = regexp.MustCompile(`docs/([A-Z]+\.md)`)

// manual makes a chapter of an example: a section for each table, with a list of its keys.
func manual(example string) string {
	var c chapter
	c.out.WriteString(manualHead)
	for line := range strings.Lines(example) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
		if m := tableLine.FindStringSubmatch(line); m != nil {
			c.heading("[" + strings.Replace(m[2], "db.example", "db.NAME", 1) + "]")
			c.paragraph() // which introduces the table, if it stands directly above
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			c.key(m[2], m[3], m[1] != "")
		} else if line == "" || text == "" {
			c.paragraph()
		} else {
			text = strings.NewReplacer("<", "\\<", "*", "\\*", "marked [SIGHUP]", "marked SIGHUP").Replace(text)
			c.prose = append(c.prose, pageName.ReplaceAllString(text, "[$1]($1)"))
		}
	}
	if len(c.prose) > 0 {
		c.heading("Retired keys")
		c.paragraph()
	}
	return strings.TrimRight(c.out.String(), "\n") + "\n"
}

// heading begins a section.
func (c *chapter) heading(text string) {
	if c.keys > 0 {
		c.out.WriteString("\n")
	}
	fmt.Fprintf(&c.out, "## %s\n\n", text)
}

// paragraph writes the collected lines of a paragraph.
func (c *chapter) paragraph() {
	if len(c.prose) > 0 {
		fmt.Fprintf(&c.out, "%s\n\n", strings.Join(c.prose, "\n"))
	}
	c.prose = nil
}

// key writes the item of a key from its collected text.
func (c *chapter) key(name, value string, isDefault bool) {
	if c.keys == 0 {
		c.heading("Top level")
	}
	c.keys++
	text := strings.Join(c.prose, "\n  ")
	kind := "`" + value + "`"
	switch {
	case strings.HasPrefix(text, "Overrides "):
		kind = "inherited"
	case !isDefault:
		kind = "example: " + kind
	}
	if strings.Contains(text, "[SIGHUP]") {
		kind += ", SIGHUP"
	}
	text = strings.TrimRight(strings.ReplaceAll(text, "[SIGHUP]", ""), " \n")
	fmt.Fprintf(&c.out, "- `%s` (%s): %s\n", name, kind, text)
	c.prose = nil
}
