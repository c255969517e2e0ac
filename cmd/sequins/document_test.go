package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"sequins/test/expect"
)

// cliPage returns the page of the manual on the command line.
func cliPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/CLI.md")
	expect.NoError(t, err)
	return string(text)
}

// fieldsOf returns the names of the fields of a type in JSON, with those of what is in it.
func fieldsOf(prefix string, t reflect.Type) (all []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Pointer}, t.Elem().Kind()):
		return fieldsOf(prefix+"[]", t.Elem())
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]():
		return []string{prefix}
	}
	if prefix != "" {
		prefix += "."
	}
	for f := range t.Fields() {
		if f.Anonymous {
			all = append(all, fieldsOf(strings.TrimSuffix(prefix, "."), f.Type)...)
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all = append(all, fieldsOf(prefix+name, f.Type)...)
		}
	}
	return all
}

// The manual has every field of the JSON of each command, and no others.
func TestJSONIsDocumented(t *testing.T) {
	page := cliPage(t)
	type settings struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		From  string `json:"from"`
	}
	for section, want := range map[string][]string{
		"plan":     fieldsOf("", reflect.TypeFor[plan]()),
		"versions": fieldsOf("", reflect.TypeFor[sourceListing]()),
		"verify":   fieldsOf("", reflect.TypeFor[verification]()),
		"config":   fieldsOf("", reflect.TypeFor[[]settings]()),
	} {
		_, text, found := strings.Cut(page, "\n### "+section+"\n")
		if !found {
			t.Errorf("CLI.md has no section %s", section)
		}
		text, _, _ = strings.Cut(text, "\n### ")
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(row[1], ", ") {
				got = append(got, strings.Trim(name, "`"))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-code +CLI.md):\n%s", section, diff)
		}
	}
}

// The table of exit codes is the same in the code, in --help and in the manual.
func TestExitCodesAreDocumented(t *testing.T) {
	page, help := cliPage(t), sequins(t, "--help").stdout
	for code, c := range exitCodes {
		if row := fmt.Sprintf("\n| %d | %s | %s |\n", code, c.name, c.meaning); !strings.Contains(page, row) {
			t.Errorf("CLI.md has no row %s", row)
		}
		if line := fmt.Sprintf("\n    %d  %-12s %s\n", code, c.name, c.meaning); !strings.Contains(help, line) {
			t.Errorf("--help has no line %s", line)
		}
		if c.name == "" || exitName(code) != c.name {
			t.Errorf("%d has no name", code)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^\| \d \|`).FindAllString(page, -1)); n != len(exitCodes) {
		t.Errorf("CLI.md has %d exit codes", n)
	}
}

// Every command is in the manual, has help with examples, and each flag has the same meaning everywhere.
func TestCommandsAreAlike(t *testing.T) {
	page, root := cliPage(t), rootCommand()
	meanings := map[string]string{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				visit(sub)
			}
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "sequins ")
		if cmd == root || strings.HasPrefix(name, "completion") {
			return
		}
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("CLI.md has no %s", name)
		}
		if cmd.Runnable() && cmd.Example == "" {
			t.Errorf("%s has no example", name)
		}
		for _, flag := range []string{"server", "token-file", "ca", "certificate", "certificate-key", "source", "at-least", "value"} {
			f := cmd.Flags().Lookup(flag)
			if f == nil {
				continue
			}
			meaning := f.Usage
			if flag == "server" {
				meaning, _, _ = strings.Cut(meaning, " (") // what is without it differs
			}
			if name == "build" { // its flags are settings
				continue
			}
			if known := meanings[flag]; known != "" && known != meaning {
				t.Errorf("--%s of %s is %q, and elsewhere %q", flag, name, meaning, known)
			}
			meanings[flag] = meaning
		}
	}
	visit(root)
	if len(meanings) < 8 {
		t.Errorf("flags: %v", slices.Sorted(maps.Keys(meanings)))
	}
}

// What was mistyped is named, in one form for commands, databases and versions.
func TestDidYouMean(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"gt"}, `sequins: there is no command "gt"; did you mean get?`},
		{[]string{""}, `sequins: there is no command ""; see sequins --help`},
		{[]string{"stauts"}, `sequins: there is no command "stauts"; did you mean status?`},
		{[]string{"versions", "--sauce", "x"}, "sequins: unknown flag: --sauce; see sequins versions --help"},
		{[]string{"config", "x"}, `sequins: unknown command "x" for "sequins config"; see sequins config --help`},
		{[]string{"config", "--frobnicate"}, "sequins: unknown flag: --frobnicate; see sequins config --help"},
		{[]string{"load-worke"}, `sequins: there is no command "load-worke"; see sequins --help`}, // is not for people
	} {
		sequins(t, test.args...).wants(t, exitUsage, test.want)
	}
	source := pinSource(t)
	expect.NoError(t, os.Mkdir(source+"/words/2026-01-31", 0o755))
	r := sequins(t, "pin", "words", "2026-01-3", "--source", source)
	r.wants(t, exitAbsent, "sequins: "+source+"/words/2026-01-3 is not in the source: ")
	if !strings.HasSuffix(r.stderr, "; did you mean 2026-01-31?\n") {
		t.Errorf("%s", r.stderr)
	}
}

func TestCodeOf(t *testing.T) {
	absent, damaged := withCode(exitAbsent, os.ErrNotExist), withCode(exitUnreadable, errFormat)
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, exitOK}, {os.ErrNotExist, exitFailure}, {absent, exitAbsent}, {fmt.Errorf("x: %w", absent), exitAbsent},
		{withCode(exitUnhealthy, absent), exitAbsent}, {withCode(exitAbsent, nil), exitOK},
		{errors.Join(absent, absent), exitAbsent}, {errors.Join(absent, damaged), exitUnreadable}, {errors.Join(absent, os.ErrClosed), exitAbsent},
		{ofFile(os.ErrPermission, true), exitUnreadable}, {ofFile(os.ErrClosed, true), exitUnreachable}, {ofFile(os.ErrClosed, false), exitFailure},
	} {
		if got := codeOf(test.err); got != test.want {
			t.Errorf("%v: %d, want %d", test.err, got, test.want)
		}
	}
}
