package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

const opsToken = "the-token-of-the-operators"

// A node with a tokens file wants a token of those who ask how it is, and not on the command line.
func TestStatusWithToken(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	tokens, mine := filepath.Join(dir, "tokens"), filepath.Join(dir, "ops.token")
	writeFile(t, tokens, "ops "+opsToken+" * pages\nweb the-token-of-the-web *\n")
	writeFile(t, mine, opsToken+"\n")
	writeFile(t, filepath.Join(dir, "sequins.conf"), fmt.Sprintf("source = %q\nlocal_store = %q\n[auth]\ntokens_file = %q\n", source, filepath.Join(dir, "store"), tokens))
	s := startServer(t, dir)
	s.waitFor("msg=\"requests need a token\" file=" + tokens + " tokens=2")

	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		r := sequins(t, "status", "--token-file", mine, "--server", s.base)
		if r.code == exitOK {
			break
		}
		if time.Now().After(end) {
			r.wants(t, exitOK)
		}
	}
	sequins(t, "status", "--server", s.base).wants(t, exitUnreadable, "sequins: "+s.base+" wants a token: name its file with --token-file, or put it into SEQUINS_TOKEN")
	for token, want := range map[string]string{
		opsToken:                "",
		" " + opsToken + "\n":   "",
		"the-token-of-the-web":  "sequins: " + s.base + " answers with 403 Forbidden: the token web may not see status pages and explanations; --token-file or ",
		"nobody-has-this-token": "sequins: " + s.base + " answers with 401 Unauthorized: this token is not known to this node: ask those who run it for one; --token-file or ",
		"short":                 "sequins: what is in SEQUINS_TOKEN is not a token: 5 bytes",
	} {
		cmd := command(t, "status", "--server", s.base)
		cmd.Env = append(cmd.Environ(), "SEQUINS_TOKEN="+token)
		r := finish(t, cmd)
		if want == "" {
			r.wants(t, exitOK)
		} else {
			code := exitUnreadable
			if token == "short" {
				code = exitFailure
			}
			r.wants(t, code, want)
		}
		if strings.Contains(r.stdout+r.stderr, token) {
			t.Errorf("the token is shown: %s%s", r.stdout, r.stderr)
		}
	}
	cmd := command(t, "status", "--token-file", "-", "--server", s.base)
	cmd.Stdin = strings.NewReader(opsToken + "\n")
	finish(t, cmd).wants(t, exitOK)
	for _, line := range s.said() {
		if strings.Contains(line, opsToken) {
			t.Errorf("the token is logged: %s", line)
		}
	}
}

func TestOwnToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for text, want := range map[string]string{
		"":                         "what is in --token-file is not a token: 0 bytes",
		opsToken + "\n" + opsToken: "what is in --token-file is not a token: want letters",
		opsToken + "\x00":          "what is in --token-file is not a token: want letters",
		strings.Repeat("x", 4096):  "what is in --token-file is not a token: 1024 bytes",
	} {
		writeFile(t, file, text)
		if token, err := ownToken(file); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %q, %v", text, token, err)
		}
	}
	if token, err := ownToken(file + "2"); err == nil || !strings.HasPrefix(err.Error(), "--token-file: ") {
		t.Errorf("no file: %q, %v", token, err)
	}
	t.Setenv(tokenVariable, "the-token-of-the-environment")
	writeFile(t, file, opsToken)
	if token, err := ownToken(file); token != opsToken || err != nil {
		t.Errorf("both: %q, %v", token, err)
	}
}

// A node does not start without the tokens that it was told of: it would let in nobody, or everybody.
func TestTokensFileIsNotGood(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	tokens := filepath.Join(dir, "tokens")
	conf := fmt.Sprintf("source = %q\nlocal_store = %q\nbind = \"127.0.0.1:0\"\n[auth]\ntokens_file = %q\n", source, filepath.Join(dir, "store"), tokens)
	writeFile(t, filepath.Join(dir, "sequins.conf"), conf)
	for text, want := range map[string]string{
		"none":                        "sequins: auth.tokens_file: reading the tokens: stat " + tokens + ": no such file",
		"":                            "sequins: auth.tokens_file: " + tokens + ": no token in the file",
		"# x\nweb " + opsToken + "\n": "sequins: auth.tokens_file: " + tokens + ":2: want: name token databases [pages]",
	} {
		if text == "none" {
			expect.NoError(t, os.RemoveAll(tokens))
		} else {
			writeFile(t, tokens, text)
		}
		cmd := command(t)
		cmd.Dir = dir
		r := finish(t, cmd)
		last := strings.Split(strings.TrimSpace(r.stderr), "\n")
		if r.code != exitFailure || !strings.HasPrefix(last[len(last)-1], want) || strings.Contains(r.stderr, opsToken) {
			t.Errorf("%q: exit code %d\n%s", text, r.code, r.stderr)
		}
	}
}
