package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"sequins/internal/human"
	"sequins/internal/term"
	"sequins/load"
	"sequins/test/expect"
)

// many is the number of records of the database numbers: more than a batch of get, and than a pipe holds.
const many = 5000

// serveRecords starts a node with the awkward records in the database awkward, and many in numbers.
func serveRecords(t *testing.T, extra string) *served {
	t.Helper()
	dir := t.TempDir()
	writeData(t, load.FormatSequenceFile, filepath.Join(dir, "source", "awkward", "1", "part-00000"), awkward...)
	numbers := make([]dataRecord, many)
	for i := range numbers {
		numbers[i] = dataRecord{Key: fmt.Sprintf("key-%06d", i), Value: strings.Repeat(fmt.Sprint(i%10), 100)}
	}
	writeData(t, load.FormatSequenceFile, filepath.Join(dir, "source", "numbers", "1", "part-00000"), numbers...)
	writeFile(t, filepath.Join(dir, "sequins.conf"), fmt.Sprintf("source = %q\nlocal_store = %q\nsettle = \"0s\"\nrequire_success_file = false\n%s",
		filepath.Join(dir, "source"), filepath.Join(dir, "store"), extra))
	s := startServer(t, dir)
	for _, path := range []string{"/awkward/empty", "/numbers/key-000000"} {
		s.await(path, "200", func(r *http.Response, _ string) bool { return r.StatusCode == http.StatusOK })
	}
	return s
}

// get prints every value as it is, whatever the bytes of key and value.
func TestGetFromANode(t *testing.T) {
	s := serveRecords(t, "")
	addr := strings.TrimPrefix(s.base, "http://")
	for _, r := range awkward {
		got := sequins(t, "get", "--escaped", "--server", s.base, "awkward", term.Escape([]byte(r.Key)))
		got.wants(t, exitOK)
		if got.stdout != r.Value {
			t.Errorf("%q: %d bytes, want %d", r.Key, len(got.stdout), len(r.Value))
		}
	}
	for _, args := range [][]string{{"get", "--server", addr, "awkward", "a/b c"}, {"get", "awkward", "a/b c", "--server", s.base}} {
		if r := sequins(t, args...); r.stdout != awkward[2].Value {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for key, want := range map[string]string{
		"a/b c":        `{"db":"awkward","version":"1","key":"a/b c","value":"spaces\tand tabs\nand lines\r"}`,
		awkward[6].Key: `{"db":"awkward","version":"1","key":"ключ","value_base64":"0LfQvdCw0YfQtdC90LjQtSDigiDigK4="}`,
	} {
		if r := sequins(t, "get", "--server", s.base, "awkward", key, "--json"); r.stdout != want+"\n" {
			t.Errorf("%q: %+v", key, r)
		}
	}
	if r := sequins(t, "get", "--server", s.base, "awkward", "empty", "--at-least", "1"); r.code != exitOK {
		t.Errorf("at least 1: %+v", r)
	}
}

// The node is that of --server, of the environment, or of this machine.
func TestWhichNode(t *testing.T) {
	s := serveRecords(t, "")
	addr := strings.TrimPrefix(s.base, "http://")
	here := filepath.Join(t.TempDir(), "here.conf")
	writeFile(t, here, fmt.Sprintf("source = \"/none\"\nbind = %q\n", addr))
	for _, args := range [][]string{
		{"get", "numbers", "key-000001"}, {"get", "numbers", "key-000001", "key-000002"}, {"scan", "numbers", "--limit", "1", "--json"}, {"status", "numbers"}, {"status"}, {"diff", "numbers", "1", "1"},
	} {
		want := sequins(t, append(args, "--server", addr)...)
		want.wants(t, exitOK)
		for name, do := range map[string]func() *exec.Cmd{
			"--config": func() *exec.Cmd {
				cmd := command(t, append(args, "--config", here)...)
				cmd.Env = append(cmd.Env, "SEQUINS_SERVER=localhost:1")
				return cmd
			},
			"variable": func() *exec.Cmd {
				cmd := command(t, args...)
				writeFile(t, filepath.Join(cmd.Dir, "numbers", "1", "part-0"), "") // a directory is no file of records
				cmd.Env = append(cmd.Env, "SEQUINS_SERVER="+addr)
				return cmd
			},
			"sequins.conf": func() *exec.Cmd {
				cmd := command(t, args...)
				writeFile(t, filepath.Join(cmd.Dir, "sequins.conf"), fmt.Sprintf("source = \"/none\"\nbind = %q\n", addr))
				return cmd
			},
		} {
			if r := finish(t, do()); r.code != exitOK || args[0] != "status" && r.stdout != want.stdout || !strings.Contains(r.stdout, want.stdout[:1]) {
				t.Errorf("%v by %s: %+v, want %+v", args, name, r, want)
			}
		}
	}
	cmd := command(t, "get", "numbrs", "k")
	cmd.Env = append(cmd.Env, "SEQUINS_SERVER="+addr)
	finish(t, cmd).wants(t, exitAbsent, "sequins: "+s.base+` has no database "numbrs"; did you mean numbers?`)
	cmd = command(t, "get", "node1", "apple")
	cmd.Env = append(cmd.Env, "SEQUINS_SERVER=127.0.0.1:1")
	finish(t, cmd).wants(t, exitUnreachable, "sequins: http://127.0.0.1:1 refuses the connection: sequins does not run there, or listens at another address")
}

// Exit codes and messages of reads of a node.
func TestReadErrorsOfANode(t *testing.T) {
	s := serveRecords(t, "")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	nobody := ln.Addr().String()
	ln.Close()
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{exitAbsent, s.base + " has no such key in version 1 of awkward", []string{"get", "--server", s.base, "awkward", "no\nsuch"}},
		{exitAbsent, s.base + ` has no database "awkwrad"; did you mean awkward?`, []string{"get", "--server", s.base, "awkwrad", "k"}},
		{exitAbsent, s.base + ` has no database "numbrs"; did you mean numbers?`, []string{"get", "--server", s.base, "numbrs", "k", "l"}},
		{exitAbsent, s.base + ` has no database "xyz"`, []string{"scan", "--server", s.base, "xyz"}},
		{exitAbsent, s.base + ` has no database "number"; did you mean numbers?`, []string{"status", "--server", s.base, "number"}},
		{exitAbsent, s.base + ` has no database "number"; did you mean numbers?`, []string{"diff", "number", "1", "2", "--server", s.base}},
		{exitAbsent, s.base + ` answers with 404 Not Found: version 2 of numbers is not on this node: its status names those that are`, []string{"diff", "numbers", "1", "2", "--server", s.base}},
		{exitUnreachable, s.base + " answers with 503 Service Unavailable: ", []string{"get", "--server", s.base, "awkward", "empty", "--at-least", "2"}},
		{exitUnreachable, "http://" + nobody + " refuses the connection: ", []string{"get", "--server", nobody, "awkward", "k"}},
		{exitUsage, `"h:1" with a user is not the host:port of a node: a URL can have one`, []string{"get", "--server", "u:hunter2@h:1", "words", "k"}},
		{exitUsage, `"awkward" is neither the host:port nor the URL of a node`, []string{"get", "--server", "awkward", "words", "k"}},
		{exitUsage, "requires at least 2 arg(s), only received 1; see sequins get --help", []string{"get", "--server", s.base, "awkward"}},
		{exitUsage, `"awkward" is neither the host:port nor the URL of a node`, []string{"scan", "--server", "awkward", "words"}},
		{exitUsage, "the key is not escaped: ", []string{"scan", "--server", s.base, "numbers", "--escaped", "--prefix", `\q`}},
		{exitUsage, "--limit must be at least 1", []string{"scan", "--server", s.base, "numbers", "--limit", "0"}},
		{exitUsage, "--after is empty", []string{"scan", "--server", s.base, "numbers", "--after", ""}},
		{exitUsage, "accepts 1 arg(s), received 0; see sequins scan --help", []string{"scan", "--server", s.base}},
		{exitFailure, s.base + " answers with 400 Bad Request: ", []string{"scan", "--server", s.base, "numbers", "--after", "x"}},
	} {
		r := sequins(t, test.args...)
		r.wants(t, test.code, "sequins: "+test.want)
		if r.stdout != "" {
			t.Errorf("%v printed %q", test.args, r.stdout)
		}
	}
}

func TestGetOfSeveralKeys(t *testing.T) {
	s := serveRecords(t, "")
	r := sequins(t, "get", "--server", s.base, "awkward", "a/b c", "", "none", "back\\slash")
	r.wants(t, exitAbsent, "sequins: 1 of 4 keys are not in version 1 of awkward")
	if want := "a/b c\tspaces" + `\tand tabs\nand lines\r` + "\n\tthe empty key\nnone\n" + `back\\slash` + "\t" + `\x1b[2J\x07` + "\n"; r.stdout != want {
		t.Errorf("printed %q, want %q", r.stdout, want)
	}
	r = sequins(t, "get", "--json", "--escaped", "--server", s.base, "awkward", `\x00\xff`, "none")
	want := `{"key_base64":"AP8=","value":"binary key"}
{"key":"none","absent":true}
{"version":"1","keys":2,"absent":1}
`
	if r.code != exitAbsent || r.stdout != want {
		t.Errorf("%+v", r)
	}

	// No key is asked for, too: the node may not be there, nor the database.
	sequins(t, "get", "no-such-db", "-", "--server", s.base).wants(t, exitAbsent, "sequins: "+s.base+` has no database "no-such-db"`)
	sequins(t, "get", "numbers", "-", "--server", s.base).wants(t, exitOK)

	// A return is a part of the key.
	cmd := command(t, "get", "awkward", "-", "--server", s.base)
	cmd.Stdin = strings.NewReader("a/b c\r\na/b c")
	r = finish(t, cmd)
	r.wants(t, exitAbsent, "sequins: 1 of 2 keys are not in version 1 of awkward")
	if !strings.HasPrefix(r.stdout, `a/b c\r`+"\na/b c\tspaces") {
		t.Errorf("printed %q", r.stdout)
	}

	// More keys than one request has, from standard input.
	cmd = command(t, "get", "numbers", "-", "--server", s.base)
	var keys []string
	for i := range many {
		keys = append(keys, fmt.Sprintf("key-%06d", (i*7)%many))
	}
	cmd.Stdin = strings.NewReader(strings.Join(keys, "\n") + "\n")
	r = finish(t, cmd)
	r.wants(t, exitOK)
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	if len(lines) != many || !slices.EqualFunc(keys, lines, func(key, line string) bool { return strings.HasPrefix(line, key+"\t") }) {
		t.Errorf("%d lines, of which the first is %q", len(lines), lines[0])
	}
}

// What scan prints of any keys, get --escaped reads.
func TestGetOfScannedKeys(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	all := map[string]bool{`\`: true, `\x41`: true, `\\t`: true, "\n": true, "a\r": true, "\t": true, "": true, strings.Repeat("\xff", 65535): true, "é\u0085": true}
	for n := range 2000 {
		key := make([]byte, n%40)
		_, _ = random.Read(key) // never fails
		all[string(key)] = true
	}
	for b := range 256 {
		all[string([]byte{byte(b)})] = true
	}
	var records []dataRecord
	for key := range all {
		records = append(records, dataRecord{Key: key, Value: fmt.Sprintf("%.20x", key)})
	}
	dir := t.TempDir()
	writeData(t, load.FormatSequenceFile, filepath.Join(dir, "source", "odd", "1", "part-00000"), records...)
	writeFile(t, filepath.Join(dir, "sequins.conf"), fmt.Sprintf("source = %q\nlocal_store = %q\nsettle = \"0s\"\nrequire_success_file = false\n",
		filepath.Join(dir, "source"), filepath.Join(dir, "store")))
	s := startServer(t, dir)
	s.await("/odd/%5C", "200", func(r *http.Response, _ string) bool { return r.StatusCode == http.StatusOK })
	whole := sequins(t, "scan", "--server", s.base, "odd")
	whole.wants(t, exitOK)
	if n := strings.Count(whole.stdout, "\n"); n != len(records) {
		t.Fatalf("%d records, want %d", n, len(records))
	}
	for _, keys := range []string{" --keys-only", " | cut -f1"} {
		cmd := exec.Command("bash", "-c", "set -o pipefail; $0 scan odd --server $1"+keys+" | $0 get --escaped odd - --server $1", os.Args[0], s.base)
		cmd.Env = append(os.Environ(), beSequins+"=1", "GORACE=atexit_sleep_ms=0")
		out, err := cmd.Output()
		if err != nil || string(out) != whole.stdout {
			t.Errorf("scan%s: %v, %d bytes, want %d", keys, err, len(out), len(whole.stdout))
		}
	}
	for _, bad := range []string{`\`, `a\q`, `\x`, `\x4`, `\xgg`, `\\\`, `\X41`, `\41`} {
		sequins(t, "get", "--escaped", "--server", s.base, "odd", bad, "x").wants(t, exitUsage, "sequins: the key is not escaped: ")
	}
}

// Decoding a key takes time in proportion to its length: the rest of it is not copied for each escape.
func TestLongEscapedKey(t *testing.T) {
	text := strings.Repeat(`\xff`, 65535)
	allocated := testing.AllocsPerRun(1, func() {
		_, err := parseKey(text, true)
		expect.NoError(t, err)
	})
	if allocated > 1 {
		t.Errorf("%v allocations", allocated)
	}
}

// Values that are together more than a node answers with are divided among requests.
func TestGetOfLargeValues(t *testing.T) {
	s := serveRecords(t, "[batch]\nmax_bytes = \"256KiB\"\n")
	r := sequins(t, "get", "--server", s.base, "awkward", "large", "large", "empty", "large")
	r.wants(t, exitOK)
	if n := strings.Count(r.stdout, "large\t"+awkward[5].Value+"\n"); n != 3 || !strings.Contains(r.stdout, "\nempty\t\n") {
		t.Errorf("%d large values", n)
	}
}

func TestScan(t *testing.T) {
	s := serveRecords(t, "")
	r := sequins(t, "scan", "--server", s.base, "awkward")
	r.wants(t, exitOK)
	var want strings.Builder
	for _, record := range awkward {
		fmt.Fprintf(&want, "%s\t%s\n", term.Escape([]byte(record.Key)), term.Escape([]byte(record.Value)))
	}
	if r.stdout != want.String() {
		t.Errorf("printed %.300q", r.stdout)
	}
	r = sequins(t, "scan", "--server", s.base, "awkward", "--json", "--start", "a", "--end", "f")
	if want := `{"key":"a/b c","value":"spaces\tand tabs\nand lines\r"}
{"key":"back\\slash","value":"\u001b[2J\u0007"}
{"key":"empty","value":""}
{"version":"1","records":3,"cursor":null}
`; r.code != exitOK || r.stdout != want {
		t.Errorf("%+v", r)
	}
	if r = sequins(t, "scan", "--server", s.base, "awkward", "--escaped", "--prefix", `\x00`, "--keys-only"); r.stdout != `\x00\xff`+"\n" {
		t.Errorf("keys: %+v", r)
	}

	// In two parts, connected by the cursor.
	r = sequins(t, "scan", "--server", s.base, "numbers", "--limit", "3", "--keys-only", "--start", "key-000010")
	r.wants(t, exitOK, "there are more: --after ")
	if r.stdout != "key-000010\nkey-000011\nkey-000012\n" {
		t.Errorf("the first part: %q", r.stdout)
	}
	cursor := strings.TrimSpace(r.stderr[strings.Index(r.stderr, "--after ")+len("--after "):])
	r = sequins(t, "scan", "--server", s.base, "numbers", "--limit", "2", "--keys-only", "--json", "--after", cursor)
	lines := strings.Split(r.stdout, "\n")
	var end struct{ Cursor string }
	if err := json.Unmarshal([]byte(lines[2]), &end); err != nil || lines[0] != `{"key":"key-000013"}` || end.Cursor == "" {
		t.Errorf("the second part: %+v", r)
	}
}

// Wherever an answer breaks off, it is told how many records came.
func TestScanThatBreaksOff(t *testing.T) {
	s := serveRecords(t, "")
	for length := int64(1); length < 250; length += 3 {
		cut := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "http", Host: strings.TrimPrefix(s.base, "http://")})
			},
			ModifyResponse: func(a *http.Response) error {
				a.Body = struct {
					io.Reader
					io.Closer
				}{io.MultiReader(io.LimitReader(a.Body, length), iotest.ErrReader(io.ErrUnexpectedEOF)), a.Body}
				return nil
			},
			ErrorLog: log.New(io.Discard, "", 0),
		})
		r := sequins(t, "scan", "numbers", "--server", cut.URL)
		if want := fmt.Sprintf("after %s of version 1: ", human.Plural(strings.Count(r.stdout, "\n"), "record")); r.code != exitUnreachable || !strings.Contains(r.stderr, want) {
			t.Errorf("after %d bytes: %d, %q", length, r.code, r.stderr)
		}
		cut.Close()
	}
}

// A reader that has enough ends a large scan quietly.
func TestScanIntoAPipeThatCloses(t *testing.T) {
	s := serveRecords(t, "")
	for _, args := range []string{"scan numbers --server " + s.base, "cat " + numbersFile(t, s)} {
		cmd := exec.Command("bash", "-c", os.Args[0]+" "+args+` | head -1; echo "${PIPESTATUS[0]}"`)
		cmd.Env = append(os.Environ(), beSequins+"=1", "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		if got := strings.Split(string(out), "\n"); err != nil || len(got) != 3 || !strings.HasPrefix(got[0], "key-000000\t") || got[1] != "141" {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// What cannot be written is said once, and is not the node's fault.
func TestFullDisk(t *testing.T) {
	s := serveRecords(t, "")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	expect.NoError(t, err)
	defer full.Close()
	for _, args := range []string{"scan numbers", "scan awkward", "scan awkward --json", "diff numbers 1 1", "diff numbers 1 1 --json", "get numbers key-000001 key-000002", "status", "get --help"} {
		var stderr bytes.Buffer
		code := run(append(strings.Fields(args), "--server", s.base), full, &stderr)
		if want := "sequins: write /dev/full: no space left on device\n"; code != exitFailure || stderr.String() != want {
			t.Errorf("%s: %d %q", args, code, &stderr)
		}
	}
}

// numbersFile returns the file of the database numbers.
func numbersFile(t *testing.T, s *served) string {
	t.Helper()
	return filepath.Join(s.cmd.Dir, "source", "numbers", "1", "part-00000")
}

// A token is needed for keys, as for the status.
func TestReadsWithToken(t *testing.T) {
	dir := t.TempDir()
	tokens, mine := filepath.Join(dir, "tokens"), filepath.Join(dir, "web.token")
	writeFile(t, tokens, "web the-token-of-the-web numbers\n")
	writeFile(t, mine, "the-token-of-the-web\n")
	source := filepath.Join(dir, "source")
	writeData(t, load.FormatSequenceFile, filepath.Join(source, "numbers", "1", "part-00000"), dataRecord{Key: "k", Value: "v"})
	writeFile(t, filepath.Join(dir, "sequins.conf"), fmt.Sprintf("source = %q\nlocal_store = %q\nsettle = \"0s\"\n[auth]\ntokens_file = %q\n", source, filepath.Join(dir, "store"), tokens))
	s := startServer(t, dir)
	s.waitFor(`msg="version active"`)
	for _, args := range [][]string{{"get", "--server", s.base, "numbers", "k"}, {"get", "--server", s.base, "numbers", "k", "k"}, {"scan", "--server", s.base, "numbers"}} {
		sequins(t, args...).wants(t, exitUnreadable, "sequins: "+s.base+" wants a token: name its file with --token-file, or put it into SEQUINS_TOKEN")
		if r := sequins(t, append(args, "--token-file", mine)...); r.code != exitOK || !strings.HasSuffix(strings.TrimSpace(r.stdout), "v") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	sequins(t, "get", "--server", s.base, "other", "k", "--token-file", mine).wants(t, exitUnreadable, "sequins: "+s.base+" answers with 403 Forbidden: ")
}
