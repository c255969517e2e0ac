package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
)

// There is a manual page for every command, and it has what --help has.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	sequins(t, "man", dir).wants(t, exitOK)
	for _, name := range []string{"sequins", "sequins-status", "sequins-versions", "sequins-verify", "sequins-check-config"} {
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		expect.NoError(t, err)
		for _, want := range []string{".SH NAME", ".SH DESCRIPTION", ".SH EXAMPLE"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "sequins.1"))
	expect.NoError(t, err)
	for _, want := range []string{"<source>/<db>/<version>/<files>", "--local-store"} {
		if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), want) {
			t.Errorf("sequins.1 lacks %s", want)
		}
	}
	sequins(t, "man").wants(t, exitUsage, "sequins: ")
}

// The completion script of each shell is there, and knows the commands.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := sequins(t, "completion", shell)
		r.wants(t, exitOK)
		if len(r.stdout) < 1000 {
			t.Errorf("the script of %s is %q", shell, r.stdout)
		}
	}
	r := sequins(t, "__complete", "sta")
	if r.code != exitOK || !strings.HasPrefix(r.stdout, "status\t") {
		t.Errorf("sta is completed to %q", r.stdout)
	}
	if r := sequins(t, "__complete", "status", ""); !strings.HasPrefix(r.stdout, ":4") { // no files
		t.Errorf("an address is completed to %q", r.stdout)
	}
}
