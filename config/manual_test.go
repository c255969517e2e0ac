package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/CONFIGURATION.md")

const manualPath = "../docs/CONFIGURATION.md"

const manualHead = `# Configuration

This page is generated from [sequins.conf.example](../sequins.conf.example) by ` + "`go test ./config -update`" + `.

`

// CONFIGURATION.md is what manual makes of the example, and has every key.
func TestManual(t *testing.T) {
	raw, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	want := manual(string(raw))
	for _, key := range Keys() {
		name := key.Name[strings.LastIndexByte(key.Name, '.')+1:]
		if !strings.Contains(want, "\n### "+name+"\n") {
			t.Errorf("%s is not in it", key.Name)
		}
	}
	if *update {
		if err := os.WriteFile(manualPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(manualPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got), rewritten by -update:\n%s", manualPath, diff)
	}
}

// Text that introduces a table stands below its heading, text behind the last key below one of its own, and the keys
// of a database have no defaults but those that they inherit.
func TestManualSections(t *testing.T) {
	page := manual(`# The file.

# The first key.
# first = 1

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

### first

Default: ` + "`1`" + `. Takes effect after a restart.

The first key.

## [storage]

### size

Default: ` + "`2`" + `. Takes effect at SIGHUP.

The last of storage.

## [db.NAME]

About databases.

### size

Default: inherited. Takes effect at SIGHUP.

Overrides size of [storage].

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

// manual makes a chapter of an example: a section for each table, and one for each key below it.
func manual(example string) string {
	var c chapter
	c.out.WriteString(manualHead)
	for line := range strings.Lines(example) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
		if m := tableLine.FindStringSubmatch(line); m != nil {
			fmt.Fprintf(&c.out, "## [%s]\n\n", strings.Replace(m[2], "db.example", "db.NAME", 1))
			c.paragraph() // which introduces the table, if it stands directly above
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			c.key(m[2], m[3], m[1] != "")
		} else if line == "" || text == "" {
			c.paragraph()
		} else {
			c.prose = append(c.prose, strings.NewReplacer("<", "\\<", "*", "\\*").Replace(text))
		}
	}
	if rest := strings.Join(c.prose, "\n"); rest != "" {
		fmt.Fprintf(&c.out, "## Retired keys\n\n%s\n", rest)
	}
	return strings.TrimRight(c.out.String(), "\n") + "\n"
}

// paragraph writes the collected lines of a paragraph.
func (c *chapter) paragraph() {
	if len(c.prose) > 0 {
		fmt.Fprintf(&c.out, "%s\n\n", strings.Join(c.prose, "\n"))
	}
	c.prose = nil
}

// key writes the section of a key from its collected text.
func (c *chapter) key(name, value string, isDefault bool) {
	if c.keys++; c.keys == 1 {
		c.out.WriteString("## Top level\n\n")
	}
	text := strings.Join(c.prose, "\n")
	reload := "after a restart"
	if strings.Contains(text, "[SIGHUP]") {
		reload = "at SIGHUP"
	}
	kind := fmt.Sprintf("Default: `%s`", value)
	switch {
	case strings.HasPrefix(text, "Overrides "):
		kind = "Default: inherited"
	case !isDefault:
		kind = fmt.Sprintf("Example: `%s`", value)
	}
	text = strings.TrimRight(strings.ReplaceAll(text, "[SIGHUP]", ""), " \n")
	fmt.Fprintf(&c.out, "### %s\n\n%s. Takes effect %s.\n\n%s\n\n", name, kind, reload, text)
	c.prose = nil
}
